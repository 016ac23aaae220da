{{/* The daemon's configuration file, made of values. */}}

{{/* Where a key of a mounted Secret lies: list of name and key. */}}
{{- define "spark-exporter.secretFile" -}}
{{- printf "/secrets/%s/%s" (index . 0) (index . 1) }}
{{- end }}

{{/* The cluster of the values' own sources, as YAML; empty where there are none. */}}
{{- define "spark-exporter.cluster" -}}
{{- $cluster := dict "name" .Values.clusterName }}
{{- with .Values.discovery }}
{{- if .enabled }}
{{- $namespaces := dict }}
{{- if .allNamespaces }}
{{- else if .namespaces }}
{{- $_ := set $namespaces "names" .namespaces }}
{{- else }}
{{- $_ := set $namespaces "own_namespace" true }}
{{- end }}
{{- $kubernetes := dict "namespaces" $namespaces "executors" .executors "spark_applications" .sparkApplications }}
{{- with .labelSelector }}{{ $_ := set $kubernetes "label_selector" . }}{{ end }}
{{- $clientMode := dict }}
{{- with .clientMode.labelSelector }}{{ $_ := set $clientMode "label_selector" . }}{{ end }}
{{- with .clientMode.annotation }}{{ $_ := set $clientMode "annotation" . }}{{ end }}
{{- with $clientMode }}{{ $_ := set $kubernetes "client_mode" . }}{{ end }}
{{- with .podLabels }}{{ $_ := set $kubernetes "pod_labels" . }}{{ end }}
{{- $_ := set $cluster "kubernetes" $kubernetes }}
{{- end }}
{{- end }}
{{- with .Values.drivers }}{{ $_ := set $cluster "drivers" . }}{{ end }}
{{- with .Values.historyServers }}{{ $_ := set $cluster "history_servers" . }}{{ end }}
{{- $directories := .Values.eventLogs.directories }}
{{- range $volume := .Values.eventLogs.volumes }}
{{- range $directory := default (list "") $volume.directories }}
{{- $directories = append $directories (printf "/event-logs/%s/%s" $volume.claimName $directory | trimSuffix "/") }}
{{- end }}
{{- end }}
{{- with $directories }}{{ $_ := set $cluster "event_log_dirs" . }}{{ end }}
{{- if gt (len (keys $cluster)) 1 }}
{{- $http := dict }}
{{- with .Values.http.basicAuth }}
{{- if .secretName }}
{{- $_ := set $http "basic_auth" (dict "username" (required "http.basicAuth.username: whose password is in the Secret http.basicAuth.secretName?" .username) "password_file" (include "spark-exporter.secretFile" (list .secretName .passwordKey))) }}
{{- else if .username }}
{{- fail "http.basicAuth.username is given without a password: name the Secret that holds it in http.basicAuth.secretName" }}
{{- end }}
{{- end }}
{{- with .Values.http.bearerToken }}
{{- if .secretName }}
{{- if $http.basic_auth }}{{ fail "http.basicAuth and http.bearerToken exclude each other: servers take one of them" }}{{ end }}
{{- $_ := set $http "authorization" (dict "type" "Bearer" "credentials_file" (include "spark-exporter.secretFile" (list .secretName .key))) }}
{{- end }}
{{- end }}
{{- with .Values.http.ca }}
{{- if and .secretName .configMapName }}
{{- fail "http.ca.secretName and http.ca.configMapName exclude each other: authorities come from one of them" }}
{{- else if .secretName }}
{{- $_ := set $http "tls_config" (dict "ca_file" (include "spark-exporter.secretFile" (list .secretName .key))) }}
{{- else if .configMapName }}
{{- $_ := set $http "tls_config" (dict "ca_file" (printf "/configmaps/%s/%s" .configMapName .key)) }}
{{- end }}
{{- end }}
{{- with $http }}{{ $_ := set $cluster "http_config" . }}{{ end }}
{{- $store := dict }}
{{- with .Values.objectStore.options }}{{ $_ := set $store "options" . }}{{ end }}
{{- $files := dict }}
{{- range $option, $secret := .Values.objectStore.secrets }}
{{- $_ := set $files $option (include "spark-exporter.secretFile" (list $secret.secretName $secret.key)) }}
{{- end }}
{{- with $files }}{{ $_ := set $store "secret_files" . }}{{ end }}
{{- with $store }}{{ $_ := set $cluster "object_store" . }}{{ end }}
{{- toYaml $cluster }}
{{- end }}
{{- end }}

{{/* The whole file. */}}
{{- define "spark-exporter.config" -}}
{{- include "spark-exporter.noSecrets" (list "config" .Values.config) }}
{{- $clusters := list }}
{{- with include "spark-exporter.cluster" . | fromYaml }}{{ $clusters = append $clusters . }}{{ end }}
{{- range .Values.config.clusters }}
{{- if and $clusters (eq (toString .name) $.Values.clusterName) }}
{{- fail (printf "config.clusters has a cluster named %q, which is the name of the values' own sources: name one of them otherwise (clusterName)" .name) }}
{{- end }}
{{- end }}
{{- $clusters = concat $clusters (default list .Values.config.clusters) }}
{{- $storage := dict "temp_path" "/tmp/spark-exporter" }}
{{- with .Values.storage }}
{{- if and .persistence.enabled .postgresql.url }}
{{- fail "storage.persistence.enabled and storage.postgresql.url exclude each other: the store is a file or a PostgreSQL" }}
{{- end }}
{{- if .persistence.enabled }}
{{- $_ := set $storage "path" "/var/lib/spark-exporter/store.redb" }}
{{- end }}
{{- with .postgresql }}
{{- if .url }}
{{- $_ := set $storage "url" .url }}
{{- if .secretName }}
{{- $_ := set $storage "password_file" (include "spark-exporter.secretFile" (list .secretName .passwordKey)) }}
{{- end }}
{{- if .caSecretName }}
{{- $_ := set $storage "tls_config" (dict "ca_file" (include "spark-exporter.secretFile" (list .caSecretName .caKey))) }}
{{- end }}
{{- else if or .secretName .caSecretName }}
{{- fail "storage.postgresql has a Secret and no url: give storage.postgresql.url" }}
{{- end }}
{{- end }}
{{- $retention := dict }}
{{- with .retention.time }}{{ $_ := set $retention "time" . }}{{ end }}
{{- with .retention.size }}{{ $_ := set $retention "size" . }}{{ end }}
{{- with $retention }}{{ $_ := set $storage "retention" . }}{{ end }}
{{- end }}
{{- $otlp := dict }}
{{- with .Values.otlp }}
{{- if .endpoint }}
{{- $_ := set $otlp "endpoint" .endpoint }}
{{- $_ := set $otlp "protocol" .protocol }}
{{- end }}
{{- $headers := dict }}
{{- range $header, $secret := .headers }}
{{- $_ := set $headers $header (include "spark-exporter.secretFile" (list $secret.secretName $secret.key)) }}
{{- end }}
{{- with $headers }}{{ $_ := set $otlp "header_files" . }}{{ end }}
{{- with .resourceAttributes }}{{ $_ := set $otlp "resource_attributes" . }}{{ end }}
{{- if .ca.secretName }}
{{- $_ := set $otlp "tls_config" (dict "ca_file" (include "spark-exporter.secretFile" (list .ca.secretName .ca.key))) }}
{{- end }}
{{- end }}
{{- $config := dict "storage" $storage }}
{{- with $clusters }}{{ $_ := set $config "clusters" . }}{{ end }}
{{- with $otlp }}{{ $_ := set $config "otlp" . }}{{ end }}
{{- if .Values.web.showSql }}{{ $_ := set $config "web" (dict "show_sql" true) }}{{ end }}
{{- mustMergeOverwrite $config (omit (deepCopy .Values.config) "clusters") | toYaml }}
{{- end }}

{{/* The file of the ConfigMap; empty where a Secret of the user's holds it. */}}
{{- define "spark-exporter.daemonConfig" -}}
{{- if not .Values.configExistingSecret }}{{ include "spark-exporter.config" . }}{{ end }}
{{- end }}

{{/*
Stops where the configuration holds a secret itself: everybody who may read
ConfigMaps would see it. List of the path and the value there.
*/}}
{{- define "spark-exporter.noSecrets" -}}
{{- $path := index . 0 }}
{{- $value := index . 1 }}
{{- if kindIs "map" $value }}
{{- range $key, $inner := $value }}
{{- $here := printf "%s.%s" $path $key }}
{{- if and (has $key (list "password" "credentials" "client_secret" "bearer_token" "secrets")) $inner }}
{{- fail (printf "%s is a secret, and would stand in a ConfigMap: put it into a Secret, name that in secretMounts, and give its file (%s: /secrets/NAME/KEY)" $here (ternary "files" (printf "%s_file" $key) (eq $key "secrets"))) }}
{{- end }}
{{- if and (hasSuffix "otlp" $path | or (hasPrefix "config.otlp." $path)) (eq $key "headers") }}
{{- range $header, $_ := $inner }}
{{- if regexMatch "(?i)authorization|token|key|secret|cookie|password" $header }}
{{- fail (printf "%s.%s is a secret, and would stand in a ConfigMap: put it into a Secret and name that in otlp.headers" $here $header) }}
{{- end }}
{{- end }}
{{- end }}
{{- include "spark-exporter.noSecrets" (list $here $inner) }}
{{- end }}
{{- else if kindIs "slice" $value }}
{{- range $number, $inner := $value }}
{{- include "spark-exporter.noSecrets" (list (printf "%s[%d]" $path $number) $inner) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Names of all Secrets that are mounted at /secrets, each once, sorted: a list in YAML. */}}
{{- define "spark-exporter.secretNames" -}}
{{- $names := .Values.secretMounts }}
{{- with .Values.http }}
{{- $names = append $names .basicAuth.secretName }}
{{- $names = append $names .bearerToken.secretName }}
{{- $names = append $names .ca.secretName }}
{{- end }}
{{- range .Values.objectStore.secrets }}{{ $names = append $names .secretName }}{{ end }}
{{- with .Values.storage.postgresql }}
{{- $names = append $names .secretName }}
{{- $names = append $names .caSecretName }}
{{- end }}
{{- range .Values.otlp.headers }}{{ $names = append $names .secretName }}{{ end }}
{{- $names = append $names .Values.otlp.ca.secretName }}
{{- if eq (include "spark-exporter.web.probes" .) "exec" }}
{{- $names = append $names .Values.web.client.basicAuth.secretName }}
{{- $names = append $names .Values.web.client.tls.secretName }}
{{- end }}
{{- compact $names | uniq | sortAlpha | toYaml }}
{{- end }}

{{- define "spark-exporter.configMapNames" -}}
{{- append .Values.configMapMounts .Values.http.ca.configMapName | compact | uniq | sortAlpha | toYaml }}
{{- end }}
