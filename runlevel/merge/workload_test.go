package merge_test

import (
	"fmt"
	"testing"
)

func TestDeployment(t *testing.T) {
	checkClauses(t, deploymentOf, []clause{
		{name: "defaults of the server", existing: "replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600, strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 25%, maxSurge: 25%}}"},
		{name: "defaults not written out", required: "replicas: 1, strategy: {type: RollingUpdate}"},
		{name: "replicas set", existing: "replicas: 1", required: "replicas: 2", want: map[string]string{"spec.replicas": "2"}},
		{name: "replicas cleared", existing: "replicas: 5", want: map[string]string{"spec.replicas": "1"}},
		{name: "no replicas", existing: "replicas: 1", required: "replicas: 0", want: map[string]string{"spec.replicas": "0"}},
		{name: "selector replaced", required: "selector: {matchLabels: {c: d}}", want: map[string]string{"spec.selector.matchLabels": `{"c":"d"}`}},
		{name: "pause set", required: "paused: true", want: map[string]string{"spec.paused": "true"}},
		{name: "pause cleared", existing: "paused: true", want: map[string]string{"spec.paused": ""}},
		{name: "minReadySeconds set", required: "minReadySeconds: 3", want: map[string]string{"spec.minReadySeconds": "3"}},
		{name: "minReadySeconds cleared", existing: "minReadySeconds: 3", want: map[string]string{"spec.minReadySeconds": ""}},
		{name: "strategy set", required: "strategy: {type: Recreate}", want: map[string]string{"spec.strategy": `{"type":"Recreate"}`}},
		{name: "strategy cleared", existing: "strategy: {type: Recreate}", want: map[string]string{"spec.strategy": `{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"},"type":"RollingUpdate"}`}},
		{name: "strategy in part", existing: "strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 2}}", required: "strategy: {rollingUpdate: {maxUnavailable: 1}}",
			want: map[string]string{"spec.strategy.rollingUpdate": `{"maxSurge":"25%","maxUnavailable":1}`}},
		{name: "history limit set", existing: "revisionHistoryLimit: 10", required: "revisionHistoryLimit: 2", want: map[string]string{"spec.revisionHistoryLimit": "2"}},
		{name: "history limit stays", existing: "revisionHistoryLimit: 3"},
		{name: "progress deadline set", required: "progressDeadlineSeconds: 60", want: map[string]string{"spec.progressDeadlineSeconds": "60"}},
		{name: "progress deadline stays", existing: "progressDeadlineSeconds: 3"},
		{name: "template's labels", existing: "template: {metadata: {labels: {a: x, theirs: x}, annotations: {theirs: x}}}", required: "template: {metadata: {labels: {a: v, b: w}}}",
			want: map[string]string{"spec.template.metadata.labels": `{"a":"v","b":"w","theirs":"x"}`, "spec.template.metadata.annotations": `{"theirs":"x"}`}},
	})
}

func TestDaemonSet(t *testing.T) {
	checkClauses(t, func(fields string) string {
		return of("apps/v1", "DaemonSet")(fmt.Sprintf("spec: {selector: {matchLabels: {a: b}}, template: {}, %s}", fields))
	}, []clause{
		{name: "selector replaced", required: "selector: {matchLabels: {c: d}}", want: map[string]string{"spec.selector.matchLabels": `{"c":"d"}`}},
		{name: "update strategy is not looked at", existing: "updateStrategy: {type: OnDelete}, revisionHistoryLimit: 3", required: "updateStrategy: {type: RollingUpdate}, minReadySeconds: 3"},
		{name: "template", required: "template: {spec: {containers: [{name: c, image: i}]}}", want: map[string]string{"spec.template.spec.containers[0].image": `"i"`}},
		{name: "template's defaults", existing: "template: {spec: {dnsPolicy: ClusterFirst, terminationGracePeriodSeconds: 30}}"},
	})
}

func TestCronJob(t *testing.T) {
	checkClauses(t, func(fields string) string {
		return of("batch/v1", "CronJob")(fmt.Sprintf("spec: {schedule: '@daily', jobTemplate: {spec: {template: {}}}, %s}", fields))
	}, []clause{
		{name: "defaults", existing: "suspend: false, successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 1, concurrencyPolicy: Allow"},
		{name: "set", required: "startingDeadlineSeconds: 5, suspend: true, successfulJobsHistoryLimit: 7, failedJobsHistoryLimit: 8, schedule: '@hourly', timeZone: Etc/UTC, concurrencyPolicy: Forbid",
			want: map[string]string{"spec.startingDeadlineSeconds": "5", "spec.suspend": "true", "spec.successfulJobsHistoryLimit": "7", "spec.failedJobsHistoryLimit": "8", "spec.schedule": `"@hourly"`, "spec.timeZone": `"Etc/UTC"`, "spec.concurrencyPolicy": `"Forbid"`}},
		{name: "cleared", existing: "startingDeadlineSeconds: 5, suspend: true, successfulJobsHistoryLimit: 7, failedJobsHistoryLimit: 8, timeZone: Etc/UTC, concurrencyPolicy: Forbid",
			want: map[string]string{"spec.startingDeadlineSeconds": "", "spec.suspend": "false", "spec.successfulJobsHistoryLimit": "3", "spec.failedJobsHistoryLimit": "1", "spec.timeZone": "", "spec.concurrencyPolicy": `"Allow"`}},
		{name: "job", existing: "jobTemplate: {metadata: {labels: {theirs: x}}, spec: {template: {}, backoffLimit: 2}}", required: "jobTemplate: {metadata: {labels: {a: x}}, spec: {template: {spec: {containers: [{name: c}]}}}}",
			want: map[string]string{"spec.jobTemplate.metadata.labels": `{"a":"x","theirs":"x"}`, "spec.jobTemplate.spec.backoffLimit": "6", "spec.jobTemplate.spec.template.spec.containers[0].name": `"c"`}},
	})
}

func TestJob(t *testing.T) {
	job := func(fields string) string {
		return of("batch/v1", "Job")(fmt.Sprintf("spec: {template: {}, %s}", fields))
	}
	checkClauses(t, job, []clause{
		{name: "defaults", existing: "backoffLimit: 6, completionMode: NonIndexed, suspend: false, manualSelector: false, podReplacementPolicy: TerminatingOrFailed"},
		{name: "set", required: "parallelism: 2, completions: 3, activeDeadlineSeconds: 4, backoffLimit: 5, completionMode: Indexed, suspend: true, manualSelector: true, ttlSecondsAfterFinished: 7, podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: t}]}]}",
			want: map[string]string{"spec.parallelism": "2", "spec.completions": "3", "spec.activeDeadlineSeconds": "4", "spec.backoffLimit": "5", "spec.completionMode": `"Indexed"`, "spec.suspend": "true", "spec.manualSelector": "true",
				"spec.ttlSecondsAfterFinished": "7", "spec.podFailurePolicy.rules[0].onPodConditions[0].status": `"True"`}},
		{name: "cleared", existing: "activeDeadlineSeconds: 4, backoffLimit: 5, completionMode: Indexed, suspend: true, manualSelector: true, ttlSecondsAfterFinished: 7, podFailurePolicy: {rules: []}",
			want: map[string]string{"spec.activeDeadlineSeconds": "", "spec.backoffLimit": "6", "spec.completionMode": `"NonIndexed"`, "spec.suspend": "false", "spec.manualSelector": "false", "spec.ttlSecondsAfterFinished": "", "spec.podFailurePolicy": ""}},
		{name: "what the server chose", existing: "selector: {matchLabels: {controller-uid: x}}, template: {metadata: {labels: {controller-uid: x}}}"},
		// the server sets both to 1, so this goes on for ever
		{name: "parallelism and completions have no default", existing: "parallelism: 1, completions: 1", want: map[string]string{"spec.parallelism": "", "spec.completions": ""}},
		{name: "parallelism and completions given", existing: "parallelism: 1, completions: 1", required: "parallelism: 1, completions: 1"},
		{name: "template", required: "template: {spec: {containers: [{name: c}]}}", want: map[string]string{"spec.template.spec.containers[0].name": `"c"`}},
	})
}
