{{/* What the bundled servers share: of (dict "root" . "server" "nats" "values" . "port" 4222 "user" 1000). */}}

{{- define "memfleet.serverService" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "memfleet.fullname" .root }}-{{ .server }}
  labels: {{- include "memfleet.labels" (dict "root" .root "component" .server) | nindent 4 }}
spec:
  clusterIP: None
  ports:
    - { name: {{ .server }}, port: {{ .port }}, targetPort: {{ .port }} }
  selector: {{- include "memfleet.selector" (dict "root" .root "component" .server) | nindent 4 }}
{{- end -}}

{{/* The head of a stateful set, down to its pod's containers. */}}
{{- define "memfleet.serverSet" -}}
{{- $part := dict "root" .root "component" .server -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ include "memfleet.fullname" .root }}-{{ .server }}
  labels: {{- include "memfleet.labels" $part | nindent 4 }}
spec:
  replicas: 1
  serviceName: {{ include "memfleet.fullname" .root }}-{{ .server }}
  selector:
    matchLabels: {{- include "memfleet.selector" $part | nindent 6 }}
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        accessModes: [ReadWriteOnce]
        {{- with .values.storageClass }}
        storageClassName: {{ . }}
        {{- end }}
        resources:
          requests: { storage: {{ .values.storage }} }
  template:
    metadata:
      labels: {{- include "memfleet.selector" $part | nindent 8 }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: 60
      securityContext:
        runAsNonRoot: true
        runAsUser: {{ .user }}
        runAsGroup: {{ .user }}
        fsGroup: {{ .user }}
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "memfleet.generatedVariable" -}}
- name: {{ .variable }}
  valueFrom:
    secretKeyRef: { name: {{ include "memfleet.generatedSecret" .root }}, key: {{ .key }} }
{{- end -}}
