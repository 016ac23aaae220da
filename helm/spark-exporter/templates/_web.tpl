{{/* The web end: its own configuration file, and how those who ask it have to. */}}

{{/* The file of --web.config.file, as YAML; empty where there is nothing to say. */}}
{{- define "spark-exporter.web.config" -}}
{{- with .Values.web }}
{{- if .existingSecret }}
{{- if or .users .config .tls.minVersion .tls.clientCaKey }}
{{- fail "web.existingSecret holds the whole file of the web end: leave out web.users, web.config, web.tls.clientCaKey and web.tls.minVersion" }}
{{- end }}
{{- else }}
{{- $file := dict }}
{{- if .tls.secretName }}
{{- $tls := dict "cert_file" (printf "/web-tls/%s" .tls.certKey) "key_file" (printf "/web-tls/%s" .tls.keyKey) }}
{{- with .tls.minVersion }}{{ $_ := set $tls "min_version" . }}{{ end }}
{{- if .tls.clientCaKey }}
{{- $_ := set $tls "client_ca_file" (printf "/web-tls/%s" .tls.clientCaKey) }}
{{- $_ := set $tls "client_auth_type" "RequireAndVerifyClientCert" }}
{{- end }}
{{- $_ := set $file "tls_server_config" $tls }}
{{- else if or .tls.clientCaKey .tls.minVersion }}
{{- fail "web.tls has no certificate: name the Secret that holds it in web.tls.secretName" }}
{{- end }}
{{- with .users }}{{ $_ := set $file "basic_auth_users" . }}{{ end }}
{{- with mustMergeOverwrite $file (deepCopy .config) }}{{ toYaml . }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Name of the Secret with that file; empty where there is none. */}}
{{- define "spark-exporter.web.secretName" -}}
{{- if .Values.web.existingSecret }}
{{- .Values.web.existingSecret }}
{{- else if include "spark-exporter.web.config" . }}
{{- printf "%s-web" (include "spark-exporter.fullname" .) }}
{{- end }}
{{- end }}

{{- define "spark-exporter.web.scheme" -}}
{{- if .Values.web.existingSecret }}
{{- .Values.web.existingScheme }}
{{- else if (include "spark-exporter.web.config" . | fromYaml).tls_server_config }}https{{ else }}http{{ end }}
{{- end }}

{{/*
How the kubelet can ask: `http` where everybody may; else `exec`, by the
exporter's own command, where the chart was told with which credentials
(web.client), since a probe's headers would show them to everybody who may read
pods; else `tcp`, which tells only that the port is open.
*/}}
{{- define "spark-exporter.web.probes" -}}
{{- $file := include "spark-exporter.web.config" . | fromYaml }}
{{- $clientAuth := default "" (dig "tls_server_config" "client_auth_type" "" $file) }}
{{- $client := or .Values.web.client.basicAuth.secretName .Values.web.client.tls.secretName }}
{{- if $client }}exec
{{- else if or $file.basic_auth_users (hasPrefix "Require" $clientAuth) }}tcp
{{- else }}http
{{- end }}
{{- end }}

{{/* How those who have credentials ask (http_config in Prometheus' words): the root, and whether to verify the server. */}}
{{- define "spark-exporter.web.client" -}}
{{- $root := index . 0 }}
{{- $verify := index . 1 }}
{{- $http := dict }}
{{- with $root.Values.web.client.basicAuth }}
{{- if .secretName }}
{{- $_ := set $http "basic_auth" (dict "username_file" (include "spark-exporter.secretFile" (list .secretName .usernameKey)) "password_file" (include "spark-exporter.secretFile" (list .secretName .passwordKey))) }}
{{- end }}
{{- end }}
{{- if eq (include "spark-exporter.web.scheme" $root) "https" }}
{{- $tls := dict }}
{{- with $root.Values.web.client.tls }}
{{- if .secretName }}
{{- $_ := set $tls "cert_file" (include "spark-exporter.secretFile" (list .secretName "tls.crt")) }}
{{- $_ := set $tls "key_file" (include "spark-exporter.secretFile" (list .secretName "tls.key")) }}
{{- end }}
{{- if not $verify }}
{{- $_ := set $tls "insecure_skip_verify" true }}
{{- end }}
{{- end }}
{{- $_ := set $http "tls_config" $tls }}
{{- end }}
{{- toYaml $http }}
{{- end }}

{{/* What is asked by a probe: list of the root, the path, and the numbers. */}}
{{- define "spark-exporter.web.probe" -}}
{{- $root := index . 0 }}
{{- $path := index . 1 }}
{{- $kind := include "spark-exporter.web.probes" $root }}
{{- $probe := deepCopy (index . 2) }}
{{- $scheme := include "spark-exporter.web.scheme" $root }}
{{- if or $probe.httpGet $probe.exec $probe.tcpSocket $probe.grpc }}
{{- else if eq $kind "http" }}
{{- $_ := set $probe "httpGet" (dict "path" $path "port" "http" "scheme" (upper $scheme)) }}
{{- else if eq $kind "exec" }}
{{- $command := list "spark-exporter" "check-ready" (printf "%s://127.0.0.1:%v" $scheme $root.Values.web.port) "--http.config.file=/etc/spark-exporter/client.yml" (printf "--timeout=%vs" (default 1 $probe.timeoutSeconds)) }}
{{- if eq $path "/-/healthy" }}{{ $command = append $command "--healthy" }}{{ end }}
{{- $_ := set $probe "exec" (dict "command" $command) }}
{{- else }}
{{- $_ := set $probe "tcpSocket" (dict "port" "http") }}
{{- end }}
{{- toYaml $probe }}
{{- end }}

{{/* tlsConfig, basicAuth and scheme of an endpoint of the Prometheus operator. */}}
{{- define "spark-exporter.web.endpoint" -}}
{{- $endpoint := dict }}
{{- $web := .Values.web }}
{{- if eq (include "spark-exporter.web.scheme" .) "https" }}
{{- $_ := set $endpoint "scheme" "https" }}
{{- $tls := dict }}
{{- if $web.client.tls.insecureSkipVerify }}
{{- $_ := set $tls "insecureSkipVerify" true }}
{{- else }}
{{- if $web.tls.secretName }}
{{- $_ := set $tls "ca" (dict "secret" (dict "name" $web.tls.secretName "key" $web.client.tls.caKey)) }}
{{- end }}
{{- $_ := set $tls "serverName" (default (printf "%s.%s.svc" (include "spark-exporter.fullname" .) (include "spark-exporter.namespace" .)) $web.client.tls.serverName) }}
{{- end }}
{{- with $web.client.tls.secretName }}
{{- $_ := set $tls "cert" (dict "secret" (dict "name" . "key" "tls.crt")) }}
{{- $_ := set $tls "keySecret" (dict "name" . "key" "tls.key") }}
{{- end }}
{{- $_ := set $endpoint "tlsConfig" $tls }}
{{- end }}
{{- with $web.client.basicAuth }}
{{- if .secretName }}
{{- $_ := set $endpoint "basicAuth" (dict "username" (dict "name" .secretName "key" .usernameKey) "password" (dict "name" .secretName "key" .passwordKey)) }}
{{- end }}
{{- end }}
{{- toYaml $endpoint }}
{{- end }}

{{/* Where the Service answers, inside the cluster. */}}
{{- define "spark-exporter.url" -}}
{{- printf "%s://%s.%s.svc:%v" (include "spark-exporter.web.scheme" .) (include "spark-exporter.fullname" .) (include "spark-exporter.namespace" .) .Values.service.port }}
{{- end }}
