{{/* Parts of pods that roles and jobs share. */}}

{{- define "memfleet.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "memfleet.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{- define "memfleet.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Settings as variables; what a role sets wins over what all share. Of (dict "root" . "role" "gateway"). */}}
{{- define "memfleet.settings" -}}
{{- $own := (index .root.Values .role).settings -}}
{{- range $key, $value := merge (dict) $own .root.Values.settings }}
- name: MEMFLEET_{{ $key | upper | replace "." "__" }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/* Where a role finds its addresses and secrets; each gets those that it needs. Of (dict "root" . "role" . "needs" .). */}}
{{- define "memfleet.environment" -}}
- name: MEMFLEET_CONFIG
  value: /etc/memfleet/memfleet.toml
{{- if .needs.database }}
- name: MEMFLEET_STORE__URL_FILE
  value: /run/memfleet/database/url
{{- end }}
{{- if .needs.queue }}
- name: MEMFLEET_QUEUE__URL_FILE
  value: /run/memfleet/queue/url
{{- end }}
{{- if and .needs.graph (include "memfleet.hasGraph" .root) }}
- name: MEMFLEET_GRAPH__URL_FILE
  value: /run/memfleet/graph/url
- name: MEMFLEET_GRAPH__PASSWORD_FILE
  value: /run/memfleet/graph/password
{{- end }}
{{- if and (eq .role "gateway") (include "memfleet.hasBootstrapKey" .root) }}
- name: MEMFLEET_AUTH__BOOTSTRAP_KEY_FILE
  value: /run/memfleet/bootstrap/key
{{- end }}
{{- include "memfleet.settings" . }}
{{- with .root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "memfleet.mounts" -}}
- { name: config, mountPath: /etc/memfleet, readOnly: true }
- { name: temporary, mountPath: /tmp }
- { name: internal, mountPath: /run/memfleet/internal, readOnly: true }
{{- if .needs.database }}
- { name: database, mountPath: /run/memfleet/database, readOnly: true }
{{- end }}
{{- if .needs.queue }}
- { name: queue, mountPath: /run/memfleet/queue, readOnly: true }
{{- end }}
{{- if and .needs.graph (include "memfleet.hasGraph" .root) }}
- { name: graph, mountPath: /run/memfleet/graph, readOnly: true }
{{- end }}
{{- if and (eq .role "gateway") (include "memfleet.hasBootstrapKey" .root) }}
- { name: bootstrap, mountPath: /run/memfleet/bootstrap, readOnly: true }
{{- end }}
{{- if .root.Values.tls.existingSecret }}
- { name: tls, mountPath: /run/memfleet/tls, readOnly: true }
{{- end }}
{{- if and (eq .role "embedder") (ne .root.Values.model.source "image") }}
- { name: models, mountPath: /models, readOnly: true }
{{- end }}
{{- with .root.Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "memfleet.volumes" -}}
{{- $root := .root -}}
- name: config
  configMap: { name: {{ include "memfleet.fullname" $root }} }
- name: temporary
  emptyDir: { sizeLimit: 64Mi }
- name: internal
  secret:
    secretName: {{ include "memfleet.internalTokenSecret" $root }}
    items: [{ key: {{ include "memfleet.internalTokenKey" $root }}, path: token }]
{{- if .needs.database }}
- name: database
  secret:
    secretName: {{ include "memfleet.databaseSecret" $root }}
    items: [{ key: {{ include "memfleet.databaseUrlKey" $root }}, path: url }]
{{- end }}
{{- if .needs.queue }}
- name: queue
  secret:
    secretName: {{ include "memfleet.queueSecret" $root }}
    items: [{ key: {{ include "memfleet.queueUrlKey" $root }}, path: url }]
{{- end }}
{{- if and .needs.graph (include "memfleet.hasGraph" $root) }}
- name: graph
  secret:
    secretName: {{ include "memfleet.graphSecret" $root }}
    items:
      - { key: {{ include "memfleet.graphUrlKey" $root }}, path: url }
      - { key: {{ include "memfleet.graphPasswordKey" $root }}, path: password }
{{- end }}
{{- if and (eq .role "gateway") (include "memfleet.hasBootstrapKey" $root) }}
- name: bootstrap
  secret:
    secretName: {{ include "memfleet.bootstrapKeySecret" $root }}
    items: [{ key: {{ include "memfleet.bootstrapKeyKey" $root }}, path: key }]
{{- end }}
{{- with $root.Values.tls.existingSecret }}
- name: tls
  secret:
    secretName: {{ . }}
    items:
      - { key: {{ $root.Values.tls.certificateKey }}, path: certificate.pem }
      - { key: {{ $root.Values.tls.keyKey }}, path: key.pem }
      - { key: {{ $root.Values.tls.authorityKey }}, path: authority.pem }
{{- end }}
{{- if eq .role "embedder" }}
{{- if eq $root.Values.model.source "pull" }}
- name: models
  emptyDir: { sizeLimit: 1Gi }
{{- else if eq $root.Values.model.source "claim" }}
- name: models
  persistentVolumeClaim: { claimName: {{ $root.Values.model.claim }}, readOnly: true }
{{- end }}
{{- end }}
{{- with $root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The kubelet speaks no TLS to a gRPC port; the same answer is on the port of the metrics. */}}
{{- define "memfleet.probes" -}}
{{- $ready := dict "grpc" (dict "port" 9460) -}}
{{- if .Values.tls.existingSecret -}}
{{- $ready = dict "httpGet" (dict "path" "/readyz" "port" "metrics") -}}
{{- end -}}
startupProbe:
  {{- toYaml $ready | nindent 2 }}
  periodSeconds: 1
  timeoutSeconds: 2
  failureThreshold: 120
readinessProbe:
  {{- toYaml $ready | nindent 2 }}
  periodSeconds: 5
  timeoutSeconds: 2
  failureThreshold: 2
livenessProbe:
  httpGet: { path: /livez, port: metrics }
  periodSeconds: 10
  timeoutSeconds: 3
  failureThreshold: 6
{{- end -}}
