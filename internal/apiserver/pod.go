package apiserver

import "strings"

// pod fills in a Pod, which has some defaults that the template of one lacks.
func pod(o object) {
	podSpec(o)
	o.set("enableServiceLinks", true)
	own := func(c object) {
		c.in("resources", func(o object) {
			limits, _ := o["limits"].(map[string]any)
			if len(limits) > 0 {
				o.make("requests", func(o object) {
					for name, v := range limits {
						o.set(name, v)
					}
				})
			}
		})
		if o["hostNetwork"] != true {
			return
		}
		c.each("ports", func(o object) {
			if port, ok := o["containerPort"].(int64); ok {
				o.number("hostPort", port)
			}
		})
	}
	o.each("containers", own)
	o.each("initContainers", own)
}

// podSpec fills in that of a Pod or of a template.
func podSpec(o object) {
	o.set("restartPolicy", "Always")
	o.set("dnsPolicy", "ClusterFirst")
	o.set("schedulerName", "default-scheduler")
	o.set("terminationGracePeriodSeconds", int64(30))
	o.set("securityContext", map[string]any{})
	if old := o.text("serviceAccount"); old != "" {
		o.set("serviceAccountName", old)
	}
	if account := o.text("serviceAccountName"); account != "" {
		o["serviceAccount"] = account
	}
	o.each("containers", container)
	o.each("initContainers", container)
	o.each("ephemeralContainers", container)
	o.each("volumes", volume)
}

func container(o object) {
	o.set("terminationMessagePath", "/dev/termination-log")
	o.set("terminationMessagePolicy", "File")
	o.set("imagePullPolicy", pullPolicy(o.text("image")))
	o.each("ports", func(o object) { o.set("protocol", "TCP") })
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		o.in(probe, func(o object) {
			o.number("timeoutSeconds", 1)
			o.number("periodSeconds", 10)
			o.number("successThreshold", 1)
			o.number("failureThreshold", 3)
			handler(o)
		})
	}
	o.in("lifecycle", func(o object) {
		o.in("postStart", handler)
		o.in("preStop", handler)
	})
	o.each("env", func(o object) {
		o.in("valueFrom", func(o object) {
			reference(o)
			o.in("fileKeyRef", func(o object) { o.set("optional", false) })
		})
	})
}

func handler(o object) {
	o.in("httpGet", func(o object) {
		o.set("path", "/")
		o.set("scheme", "HTTP")
	})
	o.in("grpc", func(o object) { o.set("service", "") })
}

// reference fills in a reference to a field of the pod or of its resources.
func reference(o object) {
	o.in("fieldRef", func(o object) { o.set("apiVersion", "v1") })
	o.in("resourceFieldRef", func(o object) { o.set("divisor", "0") })
}

// pullPolicy is that of an image: Always only for the tag latest, which one
// without a tag and digest has.
func pullPolicy(image string) string {
	name, _, digest := strings.Cut(image, "@")
	_, tag, tagged := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	if tag == "latest" || !tagged && !digest && image != "" {
		return "Always"
	}
	return "IfNotPresent"
}

func volume(o object) {
	if len(o) == 1 && o["name"] != nil {
		o["emptyDir"] = map[string]any{}
	}
	mode := func(o object) { o.set("defaultMode", int64(0o644)) }
	items := func(o object) { o.each("items", reference) }
	o.in("secret", mode)
	o.in("configMap", mode)
	o.in("hostPath", func(o object) { o.set("type", "") })
	o.in("downwardAPI", func(o object) {
		mode(o)
		items(o)
	})
	o.in("projected", func(o object) {
		mode(o)
		o.each("sources", func(o object) {
			o.in("downwardAPI", items)
			o.in("serviceAccountToken", func(o object) { o.set("expirationSeconds", int64(3600)) })
		})
	})
	o.in("ephemeral", func(o object) {
		o.in("volumeClaimTemplate", func(o object) { o.in("spec", claim) })
	})
	o.in("image", func(o object) { o.set("pullPolicy", pullPolicy(o.text("reference"))) })
}
