{{/* The pod: the same in the Deployment of one shard and in the StatefulSet of many. */}}

{{/* template: of both. */}}
{{- define "spark-exporter.podTemplate" -}}
{{- $secrets := include "spark-exporter.secretNames" . | fromYamlArray }}
{{- $configMaps := include "spark-exporter.configMapNames" . | fromYamlArray }}
{{- $web := include "spark-exporter.web.secretName" . }}
metadata:
  annotations:
    checksum/config: {{ print (include "spark-exporter.daemonConfig" .) (include "spark-exporter.web.client" (list . false)) | sha256sum }}
    {{- if and $web (not .Values.web.existingSecret) }}
    checksum/web: {{ include "spark-exporter.web.config" . | sha256sum }}
    {{- end }}
    {{- with merge dict .Values.podAnnotations .Values.commonAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  labels:
    {{- $own := include "spark-exporter.selectorLabels" . | fromYaml }}
    {{- $own = merge $own (dict "app.kubernetes.io/component" "exporter") }}
    {{- merge $own .Values.podLabels .Values.commonLabels | toYaml | nindent 4 }}
spec:
  {{- with include "spark-exporter.imagePullSecrets" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  serviceAccountName: {{ include "spark-exporter.serviceAccountName" . }}
  automountServiceAccountToken: {{ .Values.discovery.enabled }}
  {{- with .Values.podSecurityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.schedulerName }}
  schedulerName: {{ . }}
  {{- end }}
  {{- with .Values.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range . }}
    {{- $constraint := deepCopy . }}
    {{- if not .labelSelector }}
    {{- $_ := set $constraint "labelSelector" (dict "matchLabels" (include "spark-exporter.selectorLabels" $ | fromYaml)) }}
    {{- end }}
    - {{- toYaml $constraint | nindent 6 }}
    {{- end }}
  {{- end }}
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.dnsPolicy }}
  dnsPolicy: {{ . }}
  {{- end }}
  {{- with .Values.dnsConfig }}
  dnsConfig:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.hostAliases }}
  hostAliases:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: spark-exporter
      image: {{ include "spark-exporter.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      {{- with .Values.securityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      args:
        - --config.file=/etc/spark-exporter/config.yml
        - --web.listen-address=:{{ .Values.web.port }}
        {{- if $web }}
        - --web.config.file=/etc/spark-exporter-web/web.yml
        {{- end }}
        - --log.level={{ .Values.log.level }}
        - --log.format={{ .Values.log.format }}
        {{- if gt (int .Values.replicaCount) 1 }}
        - --shard=$(POD_NAME)
        - --total-shards={{ int .Values.replicaCount }}
        {{- end }}
        {{- range .Values.extraArgs }}
        - {{ tpl . $ | quote }}
        {{- end }}
      {{- if or (gt (int .Values.replicaCount) 1) .Values.extraEnv }}
      env:
        {{- if gt (int .Values.replicaCount) 1 }}
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      {{- with .Values.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: {{ .Values.web.port }}
          protocol: TCP
      livenessProbe:
        {{- include "spark-exporter.web.probe" (list . "/-/healthy" .Values.livenessProbe) | nindent 8 }}
      readinessProbe:
        {{- include "spark-exporter.web.probe" (list . "/-/ready" .Values.readinessProbe) | nindent 8 }}
      {{- with .Values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - name: config
          mountPath: /etc/spark-exporter
          readOnly: true
        - name: temp
          mountPath: /tmp/spark-exporter
        {{- if .Values.storage.persistence.enabled }}
        - name: store
          mountPath: /var/lib/spark-exporter
        {{- end }}
        {{- if $web }}
        - name: web
          mountPath: /etc/spark-exporter-web
          readOnly: true
        {{- end }}
        {{- if .Values.web.tls.secretName }}
        - name: web-tls
          mountPath: /web-tls
          readOnly: true
        {{- end }}
        {{- range $number, $name := $secrets }}
        - name: secret-{{ $number }}
          mountPath: /secrets/{{ $name }}
          readOnly: true
        {{- end }}
        {{- range $number, $name := $configMaps }}
        - name: configmap-{{ $number }}
          mountPath: /configmaps/{{ $name }}
          readOnly: true
        {{- end }}
        {{- range $number, $volume := .Values.eventLogs.volumes }}
        - name: event-logs-{{ $number }}
          mountPath: /event-logs/{{ $volume.claimName }}
          {{- with $volume.subPath }}
          subPath: {{ . | quote }}
          {{- end }}
          readOnly: true
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with .Values.sidecars }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: config
      {{- include "spark-exporter.configVolume" . | nindent 6 }}
    - name: temp
      emptyDir:
        sizeLimit: {{ .Values.storage.temp.sizeLimit }}
        {{- with .Values.storage.temp.medium }}
        medium: {{ . }}
        {{- end }}
    {{- if and .Values.storage.persistence.enabled (le (int .Values.replicaCount) 1) }}
    - name: store
      persistentVolumeClaim:
        claimName: {{ include "spark-exporter.claimName" . }}
    {{- end }}
    {{- if $web }}
    - name: web
      secret:
        secretName: {{ $web }}
        defaultMode: 0440
        items:
          - key: web.yml
            path: web.yml
    {{- end }}
    {{- with .Values.web.tls.secretName }}
    - name: web-tls
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- range $number, $name := $secrets }}
    - name: secret-{{ $number }}
      secret:
        secretName: {{ $name }}
        defaultMode: 0440
    {{- end }}
    {{- range $number, $name := $configMaps }}
    - name: configmap-{{ $number }}
      configMap:
        name: {{ $name }}
    {{- end }}
    {{- range $number, $volume := .Values.eventLogs.volumes }}
    - name: event-logs-{{ $number }}
      persistentVolumeClaim:
        claimName: {{ $volume.claimName }}
        readOnly: true
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* config.yml from the chart or from a Secret of the user's; client.yml from the chart. */}}
{{- define "spark-exporter.configVolume" -}}
{{- if .Values.configExistingSecret -}}
projected:
  defaultMode: 0440
  sources:
    - secret:
        name: {{ .Values.configExistingSecret }}
        items:
          - key: config.yml
            path: config.yml
    - configMap:
        name: {{ include "spark-exporter.fullname" . }}
        items:
          - key: client.yml
            path: client.yml
{{- else -}}
configMap:
  name: {{ include "spark-exporter.fullname" . }}
{{- end }}
{{- end }}
