{{/* Names, labels, and what each role needs. */}}

{{- define "memfleet.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "memfleet.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "memfleet.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "memfleet.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The roles, with the servers and roles that each one reaches. */}}
{{- define "memfleet.roles" -}}
gateway: { database: true, queue: true, graph: true, calls: [retriever, judge, refresher, embedder] }
constructor: { database: true, queue: true, calls: [embedder] }
retriever: { database: true, queue: true, calls: [embedder] }
judge: { database: true, queue: true, calls: [embedder, retriever] }
refresher: { database: true, queue: true, calls: [embedder] }
consolidator: { database: true, queue: true, graph: true, calls: [embedder] }
embedder: { database: false, queue: false, calls: [] }
{{- end -}}

{{/* Labels that find pods: of (dict "root" . "component" "gateway"). */}}
{{- define "memfleet.selector" -}}
app.kubernetes.io/name: {{ include "memfleet.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "memfleet.labels" -}}
{{ include "memfleet.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "memfleet.image" -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}

{{/* Secrets: the one that is named, else the one that the chart makes. */}}
{{- define "memfleet.generatedSecret" -}}
{{- printf "%s-generated" (include "memfleet.fullname" .) -}}
{{- end -}}

{{- define "memfleet.databaseSecret" -}}
{{- default (include "memfleet.generatedSecret" .) .Values.database.existingSecret -}}
{{- end -}}

{{- define "memfleet.databaseUrlKey" -}}
{{- ternary .Values.database.urlKey "database-url" (ne .Values.database.existingSecret "") -}}
{{- end -}}

{{- define "memfleet.databaseOwnerUrlKey" -}}
{{- ternary .Values.database.ownerUrlKey "database-owner-url" (ne .Values.database.existingSecret "") -}}
{{- end -}}

{{- define "memfleet.queueSecret" -}}
{{- default (include "memfleet.generatedSecret" .) .Values.queue.existingSecret -}}
{{- end -}}

{{- define "memfleet.queueUrlKey" -}}
{{- ternary .Values.queue.urlKey "queue-url" (ne .Values.queue.existingSecret "") -}}
{{- end -}}

{{/* Whether there is a semantic graph at all. */}}
{{- define "memfleet.hasGraph" -}}
{{- if or .Values.graph.existingSecret .Values.bundled.neo4j.enabled }}true{{ end -}}
{{- end -}}

{{- define "memfleet.graphSecret" -}}
{{- default (include "memfleet.generatedSecret" .) .Values.graph.existingSecret -}}
{{- end -}}

{{- define "memfleet.graphUrlKey" -}}
{{- ternary .Values.graph.urlKey "graph-url" (ne .Values.graph.existingSecret "") -}}
{{- end -}}

{{- define "memfleet.graphPasswordKey" -}}
{{- ternary .Values.graph.passwordKey "neo4j-password" (ne .Values.graph.existingSecret "") -}}
{{- end -}}

{{- define "memfleet.internalTokenSecret" -}}
{{- default (include "memfleet.generatedSecret" .) .Values.internalToken.existingSecret -}}
{{- end -}}

{{- define "memfleet.internalTokenKey" -}}
{{- ternary .Values.internalToken.key "internal-token" (ne .Values.internalToken.existingSecret "") -}}
{{- end -}}

{{- define "memfleet.bootstrapKeySecret" -}}
{{- default (include "memfleet.generatedSecret" .) .Values.auth.bootstrapKey.existingSecret -}}
{{- end -}}

{{- define "memfleet.bootstrapKeyKey" -}}
{{- ternary .Values.auth.bootstrapKey.key "bootstrap-key" (ne .Values.auth.bootstrapKey.existingSecret "") -}}
{{- end -}}

{{/* Whether the gateway gets a bootstrap key at all. */}}
{{- define "memfleet.hasBootstrapKey" -}}
{{- if or .Values.auth.bootstrapKey.existingSecret .Values.generateSecrets }}true{{ end -}}
{{- end -}}

{{- define "memfleet.scheme" -}}
{{- ternary "https" "http" (ne .Values.tls.existingSecret "") -}}
{{- end -}}

{{/* Says what is missing, or there twice, before anything is installed. */}}
{{- define "memfleet.validate" -}}
{{- if eq .Values.bundled.postgres.enabled (ne .Values.database.existingSecret "") -}}
{{- fail "give either database.existingSecret, the secret with the address of PostgreSQL, or bundled.postgres.enabled for a trial" -}}
{{- end -}}
{{- if eq .Values.bundled.nats.enabled (ne .Values.queue.existingSecret "") -}}
{{- fail "give either queue.existingSecret, the secret with the address of NATS, or bundled.nats.enabled for a trial" -}}
{{- end -}}
{{- if and .Values.bundled.neo4j.enabled .Values.graph.existingSecret -}}
{{- fail "give either graph.existingSecret, the secret with the address of Neo4j, or bundled.neo4j.enabled for a trial" -}}
{{- end -}}
{{- if not .Values.generateSecrets -}}
{{- if not .Values.internalToken.existingSecret -}}
{{- fail "internalToken.existingSecret is missing: name a secret, or set generateSecrets" -}}
{{- end -}}
{{- $issuer := or (index .Values.settings "auth.jwt.issuer") (index .Values.gateway.settings "auth.jwt.issuer") -}}
{{- if not (or .Values.auth.bootstrapKey.existingSecret .Values.auth.keys $issuer) -}}
{{- fail "nobody could call the gateway: set auth.keys, auth.bootstrapKey.existingSecret or settings.auth.jwt.issuer, or set generateSecrets" -}}
{{- end -}}
{{- if or .Values.bundled.postgres.enabled .Values.bundled.nats.enabled .Values.bundled.neo4j.enabled -}}
{{- fail "bundled servers need generateSecrets: the chart makes their passwords" -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.model.source "claim") (not .Values.model.claim) -}}
{{- fail "model.claim is missing: name the volume claim that holds the model" -}}
{{- end -}}
{{- end -}}
