package apiserver

func namespace(o object) {
	o.in("metadata", func(o object) {
		if name := o.text("name"); name != "" {
			o.make("labels", func(labels object) { labels["kubernetes.io/metadata.name"] = name })
		}
	})
	o.make("spec", func(o object) { o.set("finalizers", []any{"kubernetes"}) })
}

func service(o object) {
	o.set("sessionAffinity", "None")
	o.set("type", "ClusterIP")
	external, _ := o["externalIPs"].([]any)
	switch kind := o["type"]; kind {
	case "ClusterIP", "NodePort", "LoadBalancer":
		o.set("internalTrafficPolicy", "Cluster")
		if kind != "ClusterIP" || len(external) > 0 {
			o.set("externalTrafficPolicy", "Cluster")
		}
		if kind == "LoadBalancer" {
			o.set("allocateLoadBalancerNodePorts", true)
		}
	}
	switch o["sessionAffinity"] {
	case "None":
		delete(o, "sessionAffinityConfig")
	case "ClientIP":
		o.make("sessionAffinityConfig", func(o object) {
			o.make("clientIP", func(o object) { o.set("timeoutSeconds", int64(10800)) })
		})
	}
	o.each("ports", func(o object) {
		o.set("protocol", "TCP")
		switch o["targetPort"] {
		case nil, int64(0), "":
			if port := o["port"]; port != nil {
				o["targetPort"] = port
			}
		}
	})
}

func volumeOfCluster(o object) {
	o.set("persistentVolumeReclaimPolicy", "Retain")
	claim(o)
}

func claim(o object) { o.set("volumeMode", "Filesystem") }

func binding(o object) {
	o.in("roleRef", func(o object) { o.set("apiGroup", rbacGroup) })
	o.each("subjects", func(o object) {
		switch o["kind"] {
		case "User", "Group":
			o.set("apiGroup", rbacGroup)
		case "ServiceAccount":
			if o["apiGroup"] == "" {
				delete(o, "apiGroup")
			}
		}
	})
}

func storageClass(o object) {
	o.set("reclaimPolicy", "Delete")
	o.set("volumeBindingMode", "Immediate")
}

func csiDriver(o object) {
	o.set("attachRequired", true)
	o.set("podInfoOnMount", false)
	o.set("storageCapacity", false)
	o.set("fsGroupPolicy", "ReadWriteOnceWithFSType")
	o.set("requiresRepublish", false)
	o.set("seLinuxMount", false)
	o.list("volumeLifecycleModes", "Persistent")
}

func networkPolicy(o object) {
	ports := func(o object) { o.each("ports", func(o object) { o.set("protocol", "TCP") }) }
	o.each("ingress", ports)
	o.each("egress", ports)
	types := []any{"Ingress"}
	if e, _ := o["egress"].([]any); len(e) > 0 {
		types = append(types, "Egress")
	}
	o.list("policyTypes", types...)
}

func ingressClass(o object) {
	o.in("parameters", func(o object) { o.set("scope", "Cluster") })
}

func autoscaler(o object) { o.set("minReplicas", int64(1)) }

func flowSchema(o object) { o.number("matchingPrecedence", 1000) }

func priorityLevel(o object) {
	o.in("limited", func(o object) {
		o.set("nominalConcurrencyShares", int64(30))
		o.set("lendablePercent", int64(0))
		o.in("limitResponse", func(o object) {
			o.in("queuing", func(o object) {
				o.number("handSize", 8)
				o.number("queues", 64)
				o.number("queueLengthLimit", 50)
			})
		})
	})
	o.in("exempt", func(o object) {
		o.set("nominalConcurrencyShares", int64(0))
		o.set("lendablePercent", int64(0))
	})
}

// imageStream has what the API server of OpenShift fills in. The importMode is
// not among it: that depends on the cluster.
func imageStream(o object) {
	o.make("lookupPolicy", func(o object) { o.set("local", false) })
	o.each("tags", func(o object) {
		o.make("referencePolicy", func(o object) { o.set("type", "Source") })
	})
}
