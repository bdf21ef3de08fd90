package apiserver

import "math"

func deployment(o object) {
	o.set("replicas", int64(1))
	o.set("revisionHistoryLimit", int64(10))
	o.set("progressDeadlineSeconds", int64(600))
	o.make("strategy", func(o object) {
		o.set("type", "RollingUpdate")
		if o["type"] == "RollingUpdate" {
			o.make("rollingUpdate", func(o object) {
				o.set("maxUnavailable", "25%")
				o.set("maxSurge", "25%")
			})
		}
	})
	o.in("template", template)
}

func replicaSet(o object) {
	o.set("replicas", int64(1))
	o.in("template", template)
}

func daemonSet(o object) {
	o.set("revisionHistoryLimit", int64(10))
	o.make("updateStrategy", func(o object) {
		o.set("type", "RollingUpdate")
		if o["type"] == "RollingUpdate" {
			o.make("rollingUpdate", func(o object) {
				o.set("maxUnavailable", int64(1))
				o.set("maxSurge", int64(0))
			})
		}
	})
	o.in("template", template)
}

func statefulSet(o object) {
	o.set("replicas", int64(1))
	o.set("revisionHistoryLimit", int64(10))
	o.set("podManagementPolicy", "OrderedReady")
	o.make("updateStrategy", func(o object) {
		if o.text("type") == "" { // a type without what it needs stays so
			o.set("type", "RollingUpdate")
			o.set("rollingUpdate", map[string]any{})
		}
		if o["type"] == "RollingUpdate" {
			o.in("rollingUpdate", func(o object) { o.set("partition", int64(0)) })
		}
	})
	o.make("persistentVolumeClaimRetentionPolicy", func(o object) {
		o.set("whenDeleted", "Retain")
		o.set("whenScaled", "Retain")
	})
	o.each("volumeClaimTemplates", func(o object) {
		o.set("apiVersion", "v1")
		o.set("kind", "PersistentVolumeClaim")
		o.in("spec", claim)
		o.make("status", func(o object) { o.set("phase", "Pending") })
	})
	o.in("template", template)
}

func job(o object) {
	if o["completions"] == nil && o["parallelism"] == nil {
		o.set("completions", int64(1))
	}
	o.set("parallelism", int64(1))
	failures, replace := int64(6), "TerminatingOrFailed"
	if o["backoffLimitPerIndex"] != nil {
		failures = math.MaxInt32
	}
	o.in("podFailurePolicy", func(o object) {
		replace = "Failed"
		o.each("rules", podConditions)
	})
	o.set("backoffLimit", failures)
	o.set("completionMode", "NonIndexed")
	o.set("suspend", false)
	o.set("manualSelector", false)
	o.set("podReplacementPolicy", replace)
	o.in("template", template)
}

func podConditions(o object) {
	o.each("onPodConditions", func(o object) { o.set("status", "True") })
}

func cronJob(o object) {
	o.set("concurrencyPolicy", "Allow")
	o.set("suspend", false)
	o.set("successfulJobsHistoryLimit", int64(3))
	o.set("failedJobsHistoryLimit", int64(1))
	o.in("jobTemplate", func(o object) {
		o.in("spec", func(o object) { // not what a Job has by itself
			o.in("podFailurePolicy", func(o object) { o.each("rules", podConditions) })
			o.in("template", template)
		})
	})
}

func template(o object) { o.in("spec", podSpec) }
