# Runs a server until it ends, or until whoever started this is gone: then stdin ends, however they went. The server's folder,
# which is the current one, then goes as well.
# usage: supervise.sh SIGNAL PROGRAM [ARGS]; prints the server's process id.
signal=$1
shift
exec 3<&0
"$@" </dev/null >&2 3<&- &
server=$!
(
  exec >/dev/null 2>&1
  read -r _ <&3
  trap '' TERM
  # A stopped server would not hear the signal.
  kill -CONT "$server"
  kill -"$signal" "$server"
  tries=0
  while kill -0 "$server"; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || kill -KILL "$server"
    sleep 0.05
  done
  cd / && rm -rf "$OLDPWD"
) &
watcher=$!
echo "$server"
exec >&2
wait "$server"
status=$?
kill "$watcher" 2>/dev/null
wait "$watcher" 2>/dev/null
exit "$status"
