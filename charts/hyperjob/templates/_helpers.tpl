{{- define "hyperjob.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := .Chart.Name -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels of one component: (dict "root" $ "component" "webhook"). */}}
{{- define "hyperjob.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "hyperjob.labels" -}}
{{ include "hyperjob.selector" . }}
app.kubernetes.io/part-of: hyperjob
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "hyperjob.image" -}}
{{- $image := .Values.image -}}
{{- $repository := $image.repository -}}
{{- with (.Values.global).imageRegistry -}}
{{- $repository = printf "%s/%s" . $repository -}}
{{- end -}}
{{- if $image.digest -}}
{{ $repository }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ default .Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}

{{- define "hyperjob.tlsSecret" -}}
{{- default (printf "%s-webhook-tls" (include "hyperjob.fullname" .)) .Values.certificates.secretName -}}
{{- end -}}

{{/* A volume of the webhook's certificate and key. */}}
{{- define "hyperjob.tlsVolume" -}}
- name: tls
  secret:
    secretName: {{ include "hyperjob.tlsSecret" . }}
    # The same Secret may have the authority's key, which this pod must not mount.
    items:
      - {key: tls.crt, path: tls.crt}
      - {key: tls.key, path: tls.key}
{{- end -}}

{{- define "hyperjob.controllerSecret" -}}
{{ include "hyperjob.fullname" . }}-controller-karmada
{{- end -}}

{{- define "hyperjob.certsSecret" -}}
{{ include "hyperjob.fullname" . }}-certs-karmada
{{- end -}}

{{- define "hyperjob.webhookSecret" -}}
{{ include "hyperjob.fullname" . }}-webhook-karmada
{{- end -}}

{{- define "hyperjob.uiSecret" -}}
{{ include "hyperjob.fullname" . }}-ui-karmada
{{- end -}}

{{- define "hyperjob.membersSecret" -}}
{{ include "hyperjob.fullname" . }}-members-karmada
{{- end -}}

{{/* The step of controller.members, empty for off; YAML reads an unquoted off as false. */}}
{{- define "hyperjob.members" -}}
{{- $step := toString .Values.controller.members -}}
{{- if not (has $step (list "off" "false")) -}}{{ $step }}{{- end -}}
{{- end -}}

{{- define "hyperjob.webhookHost" -}}
{{ include "hyperjob.fullname" . }}-webhook.{{ .Release.Namespace }}.svc
{{- end -}}

{{- define "hyperjob.webhookURL" -}}
{{- default (printf "https://%s:443" (include "hyperjob.webhookHost" .)) .Values.webhook.url -}}
{{- end -}}

{{/* Names of the serving certificate, a JSON list. */}}
{{- define "hyperjob.names" -}}
{{- $names := list (include "hyperjob.webhookHost" .) (printf "%s.cluster.local" (include "hyperjob.webhookHost" .)) -}}
{{- with .Values.webhook.url -}}
{{- $names = append $names ((urlParse .).hostname) -}}
{{- end -}}
{{- concat $names .Values.certificates.extraNames | uniq | toJson -}}
{{- end -}}

{{/* Secrets that may contain an administrator's kubeconfig: a JSON list of name and key. */}}
{{- define "hyperjob.kubeconfigs" -}}
{{- with .Values.karmada.kubeconfigSecret -}}
{{- if .name -}}
{{- list (dict "name" .name "key" .key) | toJson -}}
{{- else -}}
{{- list (dict "name" "karmada-kubeconfig" "key" "kubeconfig") (dict "name" "karmada-admin-config" "key" "karmada.config") (dict "name" "karmada-controller-manager-config" "key" "karmada.config") (dict "name" "karmada-webhook-config" "key" "karmada.config") | toJson -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The same as a path list for KUBECONFIG: kubectl's loader skips missing files. */}}
{{- define "hyperjob.kubeconfigPath" -}}
{{- $paths := list -}}
{{- range include "hyperjob.kubeconfigs" . | fromJsonArray -}}
{{- $paths = append $paths (printf "/etc/karmada/%s.%s" .name .key) -}}
{{- end -}}
{{- join ":" $paths -}}
{{- end -}}

{{- define "hyperjob.kubeconfigVolume" -}}
- name: karmada
  projected:
    sources:
      {{- range include "hyperjob.kubeconfigs" . | fromJsonArray }}
      - secret:
          name: {{ .name }}
          {{- if not $.Values.karmada.kubeconfigSecret.name }}
          optional: true
          {{- end }}
          items:
            - key: {{ .key }}
              path: {{ .name }}.{{ .key }}
      {{- end }}
{{- end -}}

{{/*
The values of the pods of a component, as JSON: each is that of `webhook`, `controller` or `ui`, or of `setup` for the
pods of Jobs, where it is given there, else that at the top. (dict "root" $ "component" "webhook")
*/}}
{{- define "hyperjob.podValues" -}}
{{- $own := get .root.Values .component | default .root.Values.setup -}}
{{- $found := dict -}}
{{- range list "affinity" "containerSecurityContext" "extraEnv" "nodeSelector" "podAnnotations" "podLabels" "podSecurityContext" "priorityClassName" "tolerations" "topologySpreadConstraints" -}}
{{- $_ := set $found . (ternary (get $own .) (get $.root.Values .) (hasKey $own .)) -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{- define "hyperjob.podMetadata" -}}
{{- $pod := include "hyperjob.podValues" . | fromJson -}}
metadata:
  labels:
    {{- merge (include "hyperjob.labels" . | fromYaml) $pod.podLabels | toYaml | nindent 4 }}
  {{- with $pod.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* The fields that the specs of all pods have. */}}
{{- define "hyperjob.podSpec" -}}
{{- $pod := include "hyperjob.podValues" . | fromJson -}}
securityContext:
  {{- toYaml $pod.podSecurityContext | nindent 2 }}
enableServiceLinks: false
{{- with concat .root.Values.imagePullSecrets ((.root.Values.global).imagePullSecrets | default list) }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with get $pod $field }}
{{ dict $field . | toYaml }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Which nodes the pods of a Deployment share: its own constraints, or softly by node and by zone. */}}
{{- define "hyperjob.spread" -}}
{{- $pod := include "hyperjob.podValues" . | fromJson -}}
{{- $selector := dict "matchLabels" (include "hyperjob.selector" . | fromYaml) -}}
{{- $softly := list -}}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" -}}
{{- $softly = append $softly (dict "maxSkew" 1 "topologyKey" . "whenUnsatisfiable" "ScheduleAnyway") -}}
{{- end -}}
topologySpreadConstraints:
  {{- range $pod.topologySpreadConstraints | default $softly }}
  - {{- merge (deepCopy .) (dict "labelSelector" $selector) | toYaml | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* The fields that all containers have; with "kubeconfig" the administrator's of the setup. */}}
{{- define "hyperjob.container" -}}
{{- $pod := include "hyperjob.podValues" . | fromJson -}}
image: {{ include "hyperjob.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml $pod.containerSecurityContext | nindent 2 }}
{{- $env := $pod.extraEnv -}}
{{- if .kubeconfig -}}
{{- $env = prepend $env (dict "name" "KUBECONFIG" "value" (include "hyperjob.kubeconfigPath" .root)) -}}
{{- end -}}
{{- with $env }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A probe with the changes of a component's values: (list .Values.webhook "livenessProbe" (dict ...)). */}}
{{- define "hyperjob.probe" -}}
{{ index . 1 }}:
  {{- merge (deepCopy (get (index . 0) (index . 1) | default dict)) (index . 2) | toYaml | nindent 2 }}
{{- end -}}

{{/* Settings as flags; a false setting becomes --no-NAME. */}}
{{- define "hyperjob.settings" -}}
{{- range $name, $value := . }}
{{- if kindIs "bool" $value }}
- {{ ternary "--" "--no-" $value }}{{ $name }}
{{- else }}
- {{ printf "--%s=%v" $name $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Mounts of extra volumes, and the volumes themselves. */}}
{{- define "hyperjob.extraMounts" -}}
{{- range . }}
- {name: {{ .name }}, mountPath: {{ .mountPath }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "hyperjob.extraVolumes" -}}
{{- range . }}
- {{ omit . "mountPath" | toYaml | nindent 2 | trim }}
{{- end }}
{{- end -}}

{{- define "hyperjob.tmpVolume" -}}
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: 16Mi
{{- end -}}
