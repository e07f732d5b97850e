{{/* Names and labels */}}
{{- define "gpuwarden.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "gpuwarden.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "gpuwarden.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "gpuwarden.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "gpuwarden.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/part-of: gpuwarden
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* By the first of these labels the daemon finds the agents. */}}
{{- define "gpuwarden.agentSelector" -}}
app.kubernetes.io/name: gpuwarden-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gpuwarden.daemonSelector" -}}
app.kubernetes.io/name: gpuwarden-daemon
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gpuwarden.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- define "gpuwarden.secret" -}}
{{- .Values.secrets.existing | default (include "gpuwarden.fullname" .) -}}
{{- end -}}

{{/* A token: as given, else the one that the cluster has already, else a new one. */}}
{{- define "gpuwarden.token" -}}
{{- $kept := (lookup "v1" "Secret" .context.Release.Namespace (include "gpuwarden.fullname" .context)) -}}
{{- if .given -}}
{{- .given | b64enc -}}
{{- else if and $kept (hasKey ($kept.data | default dict) .key) -}}
{{- index $kept.data .key -}}
{{- else -}}
{{- randAlphaNum 40 | b64enc -}}
{{- end -}}
{{- end -}}

{{/* The configuration of the agent: what the chart knows of the pod, and over it what the user wrote. */}}
{{- define "gpuwarden.agentConfig" -}}
{{- $host := .Values.agent.host -}}
{{- $sockets := list -}}
{{- range $host.criSockets }}{{ $sockets = append $sockets (printf "/host%s" .) }}{{ end -}}
{{- $paths := dict "proc" "/proc" "sys" "/host/sys" "rootfs" "/host" "kmsg" "/host/dev/kmsg" "state" "/var/lib/gpuwarden"
      "kubelet" (printf "/host%s" $host.kubelet) "docker_socket" (printf "/host%s" $host.dockerSocket) "cri_sockets" $sockets -}}
{{- $agent := dict "listen" (printf "%s:%v" .Values.agent.address .Values.agent.port) "paths" $paths
      "token_file" "/etc/gpuwarden/secrets/agent-token" -}}
{{- if .Values.actions.enabled -}}
{{- $_ := set $agent "actions" (dict "enabled" true "public_key_file" "/etc/gpuwarden/keys/action-public-key"
      "dataset_roots" .Values.actions.datasetRoots) -}}
{{- end -}}
{{- $whole := dict "agent" (mustMergeOverwrite $agent (deepCopy (.Values.config.agent | default dict))) -}}
{{- with .Values.config.log_level }}{{ $_ := set $whole "log_level" . }}{{ end -}}
{{- toYaml $whole -}}
{{- end -}}

{{/* The configuration of the daemon, likewise. The robot's address joins the receivers that are there. */}}
{{- define "gpuwarden.daemonConfig" -}}
{{- $given := deepCopy (.Values.config.daemon | default dict) -}}
{{- $agents := dict "port" .Values.agent.port "token_file" "/etc/gpuwarden/secrets/agent-token" -}}
{{- $metrics := dict "name" "metrics" "role" "viewer" "token_file" "/etc/gpuwarden/secrets/metrics-token" -}}
{{- $daemon := dict "listen" (printf "%s:%v" .Values.daemon.address .Values.daemon.port) "state" "/var/lib/gpuwarden"
      "agents" $agents "kubernetes" (dict "enabled" "yes") "token_file" "/etc/gpuwarden/secrets/page-token"
      "access" (dict "tokens" (list $metrics)) -}}
{{- if .Values.actions.enabled -}}
{{- $_ := set $daemon "cleanup" (dict "agents" (dict "private_key_file" "/etc/gpuwarden/keys/action-private-key")) -}}
{{- end -}}
{{- if gt (int .Values.daemon.replicas) 1 -}}
{{- $_ := set $daemon "lease" (dict "namespace" .Release.Namespace "name" (include "gpuwarden.fullname" .)) -}}
{{- end -}}
{{- with .Values.timezone }}{{ $_ := set $daemon "timezone" . }}{{ end -}}
{{- $tokens := dig "access" "tokens" list $given -}}
{{- $daemon = mustMergeOverwrite $daemon $given -}}
{{- $_ := set $daemon.access "tokens" (prepend $tokens $metrics) -}}
{{- if .Values.wecom.url -}}
{{- $alerts := $daemon.alerts | default dict -}}
{{- $robot := dict "name" "wecom" "kind" "wecom" "url_file" "/etc/gpuwarden/secrets/wecom-url" -}}
{{- $_ := set $alerts "receivers" (append ($alerts.receivers | default list) $robot) -}}
{{- $_ := set $daemon "alerts" $alerts -}}
{{- end -}}
{{- $whole := dict "daemon" $daemon -}}
{{- with .Values.config.log_level }}{{ $_ := set $whole "log_level" . }}{{ end -}}
{{- toYaml $whole -}}
{{- end -}}

{{/* What no schema can say. */}}
{{- define "gpuwarden.check" -}}
{{- if and (gt (int .Values.daemon.replicas) 1) .Values.daemon.persistence.enabled -}}
{{- fail "daemon.replicas is more than 1: two daemons cannot share one volume; set daemon.persistence.enabled=false, and send alerts to an Alertmanager (see deploy/README.md)" -}}
{{- end -}}
{{- if and .Values.wecom.url .Values.secrets.existing -}}
{{- fail "wecom.url and secrets.existing are both set: put the address into your Secret, and name it by config.daemon.alerts.receivers: [{url_file: /etc/gpuwarden/secrets/KEY}]" -}}
{{- end -}}
{{- if and .Values.wecom.url (gt (int .Values.daemon.replicas) 1) (not (contains "alertmanager" (toYaml (dig "daemon" "alerts" "receivers" list .Values.config)))) -}}
{{- fail "wecom.url with more than one daemon: each would tell the group, so it would tell the group twice; add an Alertmanager to config.daemon.alerts.receivers, or keep one replica" -}}
{{- end -}}
{{- range list "agent-token" "page-token" "metrics-token" "wecom-url" -}}
{{- if hasKey $.Values.secrets.extra . -}}
{{- fail (printf "secrets.extra holds %s, which has a value of its own: secrets.agentToken, pageToken, metricsToken, or wecom.url" .) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.actions.enabled (not .Values.actions.keys) -}}
{{- fail (printf "actions.enabled needs keys: create them once with `gpuwarden keys --kubernetes gpuwarden-keys | kubectl create -n %s -f -`, and set actions.keys=gpuwarden-keys" .Release.Namespace) -}}
{{- end -}}
{{- if and .Values.actions.datasetRoots (not .Values.actions.enabled) -}}
{{- fail "actions.datasetRoots is set and actions.enabled is not: agents that may not act need no dataset roots" -}}
{{- end -}}
{{- $config := toYaml .Values.config -}}
{{- if or (regexMatch "(?m)^[ -]*(token|password|secret):" $config) (regexMatch "(webhook/send\\?key=|[?&]access_token=|/bot/v2/hook/|hooks\\.slack\\.com/)" $config) -}}
{{- fail "config holds a secret, and would show it in a ConfigMap: put it under secrets.extra, and name it by token_file, password_file or url_file: /etc/gpuwarden/secrets/NAME (for WeCom: wecom.url)" -}}
{{- end -}}
{{- end -}}

{{/* Gives a role in the whole cluster to the daemon. */}}
{{- define "gpuwarden.binding" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .role }}
  labels: {{- include "gpuwarden.labels" .context | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ .role }}}
subjects:
  - {kind: ServiceAccount, name: {{ include "gpuwarden.fullname" .context }}, namespace: {{ .context.Release.Namespace }}}
{{- end }}

{{/* Takes the labels of a target away, and names its job as dashboards and rules know it. */}}
{{- define "gpuwarden.relabelings" -}}
- {action: labeldrop, regex: (namespace|pod|container|service|endpoint)}
- {targetLabel: job, replacement: {{ . }}}
{{- end -}}

{{/* Memory of the daemon grows with the cluster; a request is a quarter of the limit. */}}
{{- define "gpuwarden.daemonResources" -}}
{{- $mib := add 524 (div (int .Values.daemon.nodes) 2) -}}
{{- $requests := dict "cpu" "100m" "memory" (printf "%dMi" (div $mib 4)) -}}
{{- $limits := dict "memory" (printf "%dMi" $mib) -}}
{{- toYaml (mergeOverwrite (dict "requests" $requests "limits" $limits) (deepCopy .Values.daemon.resources)) -}}
{{- end -}}
