{{/* Names, labels, images: who the objects are. */}}

{{- define "spark-exporter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* 50 characters at most, so that what is put after it still fits into a label. */}}
{{- define "spark-exporter.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | replace "." "-" | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | replace "." "-" | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "spark-exporter.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{- define "spark-exporter.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "spark-exporter.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* What a selector holds never changes: Kubernetes refuses another one. */}}
{{- define "spark-exporter.selectorLabels" -}}
app.kubernetes.io/name: {{ include "spark-exporter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "spark-exporter.labels" -}}
{{- $labels := dict
      "app.kubernetes.io/name" (include "spark-exporter.name" .)
      "app.kubernetes.io/instance" .Release.Name
      "app.kubernetes.io/version" (.Chart.AppVersion | replace "+" "_" | trunc 63 | trimSuffix "-")
      "app.kubernetes.io/part-of" (include "spark-exporter.name" .)
      "app.kubernetes.io/component" "exporter"
      "app.kubernetes.io/managed-by" .Release.Service
      "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") }}
{{- merge $labels .Values.commonLabels | toYaml }}
{{- end }}

{{/*
metadata of an object. Takes a list: the root, what is put after the name, and a
dict that may hold namespace, labels, annotations; cluster: true for objects
without a namespace.
*/}}
{{- define "spark-exporter.metadata" -}}
{{- $root := index . 0 }}
{{- $suffix := index . 1 }}
{{- $more := dict }}
{{- if gt (len .) 2 }}{{ $more = index . 2 }}{{ end }}
{{- $annotations := merge dict (default dict $more.annotations) $root.Values.commonAnnotations -}}
name: {{ default (printf "%s%s" (include "spark-exporter.fullname" $root) $suffix) $more.name }}
{{- if not $more.cluster }}
namespace: {{ default (include "spark-exporter.namespace" $root) $more.namespace }}
{{- end }}
labels:
  {{- merge (include "spark-exporter.labels" $root | fromYaml) (default dict $more.labels) | toYaml | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "spark-exporter.image" -}}
{{- $registry := default .Values.image.registry .Values.global.imageRegistry }}
{{- $name := .Values.image.repository }}
{{- if $registry }}{{ $name = printf "%s/%s" $registry $name }}{{ end }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $name .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" $name (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "spark-exporter.imagePullSecrets" -}}
{{- $secrets := list }}
{{- range concat (default list .Values.global.imagePullSecrets) .Values.imagePullSecrets }}
{{- if kindIs "string" . }}
{{- $secrets = append $secrets (dict "name" .) }}
{{- else }}
{{- $secrets = append $secrets . }}
{{- end }}
{{- end }}
{{- with $secrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* "true" where a kind is asked for, or `auto` and the cluster knows it: list of root, value, kind. */}}
{{- define "spark-exporter.wanted" -}}
{{- $root := index . 0 }}
{{- $value := index . 1 }}
{{- if eq (toString $value) "auto" }}
{{- if $root.Capabilities.APIVersions.Has (index . 2) }}true{{ end }}
{{- else if eq (toString $value) "true" }}true{{ end }}
{{- end }}

{{- define "spark-exporter.serviceMonitor" -}}
{{- if and .Values.service.enabled (not .Values.podMonitor.enabled) }}
{{- include "spark-exporter.wanted" (list . .Values.serviceMonitor.enabled "monitoring.coreos.com/v1/ServiceMonitor") }}
{{- end }}
{{- end }}

{{- define "spark-exporter.prometheusRule" -}}
{{- include "spark-exporter.wanted" (list . .Values.prometheusRule.enabled "monitoring.coreos.com/v1/PrometheusRule") }}
{{- end }}

{{/* Name of the claim of a single shard. */}}
{{- define "spark-exporter.claimName" -}}
{{- default (printf "%s-store" (include "spark-exporter.fullname" .)) .Values.storage.persistence.existingClaim }}
{{- end }}
