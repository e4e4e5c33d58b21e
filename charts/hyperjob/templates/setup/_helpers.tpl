{{/* Annotations of a hook: (list "pre-install,pre-upgrade" -10). Helm deletes succeeded hooks. */}}
{{- define "hyperjob.hook" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* The Secrets that the Jobs write: a JSON list. */}}
{{- define "hyperjob.ownSecrets" -}}
{{- $secrets := list (include "hyperjob.controllerSecret" .) (include "hyperjob.webhookSecret" .) (include "hyperjob.certsSecret" .) -}}
{{- if include "hyperjob.members" . -}}
{{- $secrets = append $secrets (include "hyperjob.membersSecret" .) -}}
{{- end -}}
{{- if eq .Values.certificates.mode "selfSigned" -}}
{{- $secrets = append $secrets (include "hyperjob.tlsSecret" .) -}}
{{- end -}}
{{- if .Values.ui.enabled -}}
{{- $secrets = append $secrets (include "hyperjob.uiSecret" .) -}}
{{- end -}}
{{- $secrets | toJson -}}
{{- end -}}

{{/* Whether a file with the authorities for caBundle exists. */}}
{{- define "hyperjob.hasAuthorities" -}}
{{- if .Values.certificates.caKey -}}true{{- end -}}
{{- end -}}

{{/* Flags with the store and the names of the certificates. */}}
{{- define "hyperjob.certificateArgs" -}}
- --secret={{ .Release.Namespace }}/{{ include "hyperjob.tlsSecret" . }}
{{- range include "hyperjob.names" . | fromJsonArray }}
- --name={{ . }}
{{- end }}
{{- end -}}

{{/* Flags of `hyperjob install` that are the same in every step. */}}
{{- define "hyperjob.installArgs" -}}
- install
- --service-accounts
- --release={{ .Release.Namespace }}/{{ .Release.Name }}
- --{{ ternary "with" "without" .Values.ui.enabled }}=ui
- --{{ ternary "with" "without" .Values.setup.tenancy }}=tenancy
- --{{ ternary "with" "without" .Values.setup.secretWarnings }}=secret-warnings
- --{{ ternary "with" "without" .Values.setup.trainjobs }}=trainjobs
- --members={{ include "hyperjob.members" . | default "off" }}
{{- range .Values.setup.skip | default (list "none") }}
- --skip={{ . }}
{{- end }}
{{- range .Values.setup.allow }}
- --allow={{ . }}
{{- end }}
{{- end -}}

{{- define "hyperjob.credentialArgs" -}}
- credentials
- renew
- --namespace={{ .Release.Namespace }}
- --account=hyperjob-controller={{ include "hyperjob.controllerSecret" . }}
- --account=hyperjob-webhook={{ include "hyperjob.webhookSecret" . }}
{{- if .Values.ui.enabled }}
- --account=hyperjob-ui={{ include "hyperjob.uiSecret" . }}
{{- end }}
- --account=hyperjob-certs={{ include "hyperjob.certsSecret" . }}
{{- if include "hyperjob.members" . }}
- --account=hyperjob-members={{ include "hyperjob.membersSecret" . }}
{{- end }}
- --days=3
{{- end -}}

{{- define "hyperjob.jobContainer" -}}
{{ include "hyperjob.container" . }}
resources:
  {{- toYaml .root.Values.setup.resources | nindent 2 }}
{{- end -}}

{{/* Mounts of a container that uses the Karmada API server as an administrator. */}}
{{- define "hyperjob.adminMounts" -}}
- {name: karmada, mountPath: /etc/karmada, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- end -}}

{{/* A volume of the authorities alone. */}}
{{- define "hyperjob.authoritiesVolume" -}}
- name: authorities
  secret:
    secretName: {{ include "hyperjob.tlsSecret" . }}
    items:
      - {key: {{ .Values.certificates.caKey }}, path: ca.crt}
{{- end -}}

{{/* The rest of a hook Job's pod. */}}
{{- define "hyperjob.jobPod" -}}
serviceAccountName: {{ include "hyperjob.fullname" .root }}-setup
automountServiceAccountToken: true
restartPolicy: Never
{{ include "hyperjob.podSpec" . }}
{{- end -}}
