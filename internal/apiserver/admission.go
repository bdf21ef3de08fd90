package apiserver

func policy(o object) {
	o.in("spec", func(o object) {
		o.set("failurePolicy", "Fail")
		o.in("matchConstraints", matchResources)
	})
}

func policyBinding(o object) {
	o.in("spec", func(o object) { o.in("matchResources", matchResources) })
}

func matchResources(o object) {
	o.set("matchPolicy", "Equivalent")
	o.set("namespaceSelector", map[string]any{})
	o.set("objectSelector", map[string]any{})
	o.each("resourceRules", scope)
	o.each("excludeResourceRules", scope)
}

func scope(o object) { o.set("scope", "*") }

func webhook(o object) {
	o.set("failurePolicy", "Fail")
	o.set("matchPolicy", "Equivalent")
	o.set("namespaceSelector", map[string]any{})
	o.set("objectSelector", map[string]any{})
	o.set("timeoutSeconds", int64(10))
	o.in("clientConfig", clientConfig)
	o.each("rules", scope)
}

func mutatingWebhook(o object) {
	webhook(o)
	o.set("reinvocationPolicy", "Never")
}

func clientConfig(o object) {
	o.in("service", func(o object) { o.set("port", int64(443)) })
}
