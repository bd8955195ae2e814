{{- define "trotline.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "trotline.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "trotline.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "trotline.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "trotline.selector" -}}
app.kubernetes.io/name: {{ include "trotline.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "trotline.labels" -}}
{{ include "trotline.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "trotline.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "trotline.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "trotline.placesSecret" -}}
{{- default (printf "%s-places" (include "trotline.fullname" .)) .Values.places.existingSecret }}
{{- end }}

{{- define "trotline.proxiesSecret" -}}
{{- default (printf "%s-proxies" (include "trotline.fullname" .)) .Values.proxies.existingSecret }}
{{- end }}

{{- define "trotline.tokensSecret" -}}
{{- default (printf "%s-tokens" (include "trotline.fullname" .)) .Values.web.tokens.existingSecret }}
{{- end }}

{{- define "trotline.spidersConfigMap" -}}
{{- if .Values.spiders.existingConfigMap }}
{{- .Values.spiders.existingConfigMap }}
{{- else if .Values.spiders.files }}
{{- printf "%s-spiders" (include "trotline.fullname" .) }}
{{- end }}
{{- end }}

{{/* Pods of all components: nothing is writable but two folders in memory of the node, and no API token is mounted. */}}
{{- define "trotline.podSpec" -}}
serviceAccountName: {{ include "trotline.serviceAccountName" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "trotline.container" -}}
image: {{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- with .Values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "trotline.env" -}}
- name: TROTLINE_FRONTIER
  value: file:/run/secrets/trotline/places/frontier-url
- name: TROTLINE_SINK
  value: file:/run/secrets/trotline/places/sink-url
{{- if .Values.proxies.enabled }}
- name: TROTLINE_PROXIES
  value: file:/run/secrets/trotline/proxies/{{ .Values.proxies.key }}
{{- end }}
{{- range $name, $value := .Values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "trotline.mounts" -}}
- name: work
  mountPath: /work
- name: tmp
  mountPath: /tmp
- name: places
  mountPath: /run/secrets/trotline/places
  readOnly: true
{{- if .Values.proxies.enabled }}
- name: proxies
  mountPath: /run/secrets/trotline/proxies
  readOnly: true
{{- end }}
{{- if include "trotline.spidersConfigMap" . }}
- name: spiders
  mountPath: /spiders
  readOnly: true
{{- end }}
{{- end }}

{{- define "trotline.volumes" -}}
- name: work
  emptyDir:
    sizeLimit: 256Mi
- name: tmp
  emptyDir:
    sizeLimit: 256Mi
- name: places
  secret:
    secretName: {{ include "trotline.placesSecret" . }}
    # The group is ours by fsGroup.
    defaultMode: 0440
    items:
      - key: {{ .Values.places.frontierKey }}
        path: frontier-url
      - key: {{ .Values.places.sinkKey }}
        path: sink-url
{{- if .Values.proxies.enabled }}
- name: proxies
  secret:
    secretName: {{ include "trotline.proxiesSecret" . }}
    defaultMode: 0440
{{- end }}
{{- with include "trotline.spidersConfigMap" . }}
- name: spiders
  configMap:
    name: {{ . }}
{{- end }}
{{- end }}

{{/* A changed value restarts the pods. Existing Secrets and ConfigMaps are not known to the chart. */}}
{{- define "trotline.podAnnotations" -}}
checksum/config: {{ toJson (list .Values.places .Values.proxies .Values.spiders) | sha256sum }}
{{- with .Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* By a command in the container: the dashboard answers requests for its own host names only. Without metrics there is no
     port to ask, and the process must just not be suspended. */}}
{{- define "trotline.probes" -}}
livenessProbe:
  exec:
    command: [python, -I, -S, /opt/trotline/share/health.py]
  initialDelaySeconds: 20
  periodSeconds: 30
  timeoutSeconds: 5
  failureThreshold: 4
{{- end }}

{{- define "trotline.metricsArgs" -}}
{{- if .Values.metrics.enabled }}
- --metrics
- {{ printf "0.0.0.0:%d" (int .Values.metrics.port) }}
{{- end }}
{{- end }}

{{- define "trotline.metricsPort" -}}
{{- if .Values.metrics.enabled }}
ports:
  - name: metrics
    containerPort: {{ .Values.metrics.port }}
{{- end }}
{{- end }}

{{/* What is wrong with the values as a whole; the schema sees each by itself. */}}
{{- define "trotline.check" -}}
{{- if and (not .Values.places.existingSecret) (not (and .Values.places.frontier .Values.places.sink)) }}
{{- fail "places: name an existingSecret with the URLs of frontier and sink, or set places.frontier and places.sink" }}
{{- end }}
{{- if and .Values.places.existingSecret (or .Values.places.frontier .Values.places.sink) }}
{{- fail "places: existingSecret is set, so places.frontier and places.sink have no effect: remove them" }}
{{- end }}
{{- if and .Values.spiders.existingConfigMap .Values.spiders.files }}
{{- fail "spiders: existingConfigMap is set, so spiders.files has no effect: remove one of them" }}
{{- end }}
{{- if and .Values.proxies.enabled (not .Values.proxies.existingSecret) (not .Values.proxies.content) }}
{{- fail "proxies: name an existingSecret, or set proxies.content" }}
{{- end }}
{{- if and (not .Values.proxies.enabled) (or .Values.proxies.existingSecret .Values.proxies.content) }}
{{- fail "proxies: set proxies.enabled to use them" }}
{{- end }}
{{- if and .Values.web.enabled (not .Values.web.tokens.existingSecret) (not (and .Values.web.tokens.view .Values.web.tokens.operate)) }}
{{- fail "web.tokens: name an existingSecret, or set web.tokens.view and web.tokens.operate (32 characters or more); or set web.enabled to false" }}
{{- end }}
{{- if and .Values.web.ingress.enabled (not .Values.web.ingress.host) }}
{{- fail "web.ingress.host: set the name of the dashboard" }}
{{- end }}
{{- if and .Values.metrics.podMonitor.enabled (not .Values.metrics.enabled) }}
{{- fail "metrics.podMonitor needs metrics.enabled" }}
{{- end }}
{{- $seen := dict }}
{{- range .Values.workers.groups }}
{{- if hasKey $seen .name }}
{{- fail (printf "workers.groups: two groups are named %s" .name) }}
{{- end }}
{{- $_ := set $seen .name true }}
{{- $group := mustMergeOverwrite (deepCopy (omit $.Values.workers "groups")) . }}
{{- if and (eq $group.autoscaling.kind "keda") (not $.Values.web.enabled) }}
{{- fail "workers.autoscaling.kind keda needs the dashboard: set web.enabled" }}
{{- end }}
{{- if gt (int $group.autoscaling.minReplicas) (int $group.autoscaling.maxReplicas) }}
{{- fail (printf "workers.groups: %s: minReplicas is larger than maxReplicas" .name) }}
{{- end }}
{{- if and (or .regions .pools) (not $.Values.proxies.enabled) }}
{{- fail (printf "workers.groups: %s: regions and pools are those of the proxies file: set proxies.enabled" .name) }}
{{- end }}
{{- end }}
{{- end }}
