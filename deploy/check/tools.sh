# shellcheck shell=bash
# What the checks of this folder share: where their tools are kept, and at which versions.

# shellcheck disable=SC2034  # Read by those that source this file.
readonly kubernetes_version=1.34
readonly tools="${XDG_CACHE_HOME:-$HOME/.cache}/memfleet/tools"
export PATH="$tools/bin:$PATH"
mkdir -p "$tools/bin"

if ! command -v go >/dev/null; then
  echo "Go is missing: https://go.dev/dl" >&2
  exit 1
fi

# install MODULE PACKAGE VERSION [FLAGS]: a program at this version, unless it is there.
install() {
  local module=$1 package=$2 version=$3 program
  shift 3
  program="$tools/bin/$(basename "$package")"
  go version -m "$program" 2>/dev/null | grep -q "mod[[:space:]]${module}[[:space:]]${version}[[:space:]]" \
    || GOBIN="$tools/bin" go install "$@" "$package@$version"
}

install_helm() {
  install helm.sh/helm/v3 helm.sh/helm/v3/cmd/helm v3.22.0
}

helm_quiet() {
  # Helm remarks on every link to a file outside the chart.
  helm "$@" 2> >(grep -v 'found symbolic link' >&2)
}
