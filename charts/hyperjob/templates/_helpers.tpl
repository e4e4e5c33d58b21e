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
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default .Chart.AppVersion $image.tag }}
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
    defaultMode: 0440
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
    defaultMode: 0440
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

{{- define "hyperjob.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "hyperjob.containerSecurity" -}}
image: {{ include "hyperjob.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
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

{{- define "hyperjob.podAnnotations" -}}
{{- with .Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "hyperjob.tmpVolume" -}}
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: 16Mi
{{- end -}}

{{/* Scheduling fields of pods: (dict "root" $ "component" "webhook" "values" .Values.webhook). */}}
{{- define "hyperjob.placement" -}}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "hyperjob.selector" $ | nindent 8 }}
  {{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}
