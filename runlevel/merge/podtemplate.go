package merge

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// podTemplate merges what a manifest says of pods. What it does not look at
// (startup probes, pull policies, lifecycle, host PIDs and more) stays as it is.
func podTemplate(existing, required *corev1.PodTemplateSpec) {
	mergeMeta(&existing.ObjectMeta, &required.ObjectMeta)
	e, r := &existing.Spec, &required.Spec
	e.InitContainers = mergeKeyed(e.InitContainers, r.InitContainers, false, containerName, container)
	e.Containers = mergeKeyed(e.Containers, r.Containers, false, containerName, container)
	e.Volumes = mergeKeyed(e.Volumes, r.Volumes, false, func(v *corev1.Volume) string { return v.Name }, replace)

	setTextIfGiven(&e.RestartPolicy, r.RestartPolicy)
	setTextIfGiven(&e.ServiceAccountName, r.ServiceAccountName)
	setTextIfGiven(&e.PriorityClassName, r.PriorityClassName)
	setIfGiven(&e.Affinity, r.Affinity)
	e.NodeSelector = mergeMap(e.NodeSelector, r.NodeSelector)
	e.Tolerations = addMissing(addMissing(nil, e.Tolerations), r.Tolerations) // without doubles

	e.DNSPolicy, e.TerminationGracePeriodSeconds = r.DNSPolicy, r.TerminationGracePeriodSeconds
	e.HostNetwork, e.HostUsers, e.ShareProcessNamespace = r.HostNetwork, r.HostUsers, r.ShareProcessNamespace
	e.AutomountServiceAccountToken, e.Priority = r.AutomountServiceAccountToken, r.Priority
	e.SecurityContext = podSecurity(e.SecurityContext, r.SecurityContext)
}

func containerName(c *corev1.Container) string { return c.Name }

func container(e, r *corev1.Container) {
	setTextIfGiven(&e.Image, r.Image)
	setTextIfGiven(&e.WorkingDir, r.WorkingDir)
	e.Command, e.Args, e.Env, e.EnvFrom, e.Resources = r.Command, r.Args, r.Env, r.EnvFrom, r.Resources
	e.LivenessProbe, e.ReadinessProbe = r.LivenessProbe, r.ReadinessProbe
	e.Ports = mergeKeyed(e.Ports, r.Ports, false, func(p *corev1.ContainerPort) string { return p.Name }, replace)
	e.VolumeMounts = mergeKeyed(e.VolumeMounts, r.VolumeMounts, false, func(m *corev1.VolumeMount) string { return m.MountPath }, replace)
	e.SecurityContext = containerSecurity(e.SecurityContext, r.SecurityContext)
}

// podSecurity enforces all but the lists of which only additions count.
func podSecurity(e, r *corev1.PodSecurityContext) *corev1.PodSecurityContext {
	if r == nil || e == nil {
		return r
	}
	out := *r
	out.SupplementalGroups = addMissing(e.SupplementalGroups, r.SupplementalGroups)
	out.Sysctls = mergeKeyed(e.Sysctls, r.Sysctls, true, func(s *corev1.Sysctl) string { return s.Name }, replace)
	return &out
}

// containerSecurity enforces all but capabilities, of which only additions count.
func containerSecurity(e, r *corev1.SecurityContext) *corev1.SecurityContext {
	if r == nil || e == nil || e.Capabilities == nil {
		return r
	}
	out := *r
	c := *e.Capabilities
	if r.Capabilities != nil {
		c.Add = addMissing(c.Add, r.Capabilities.Add)
		c.Drop = addMissing(c.Drop, r.Capabilities.Drop)
	}
	out.Capabilities = &c
	return &out
}

// addMissing adds those elements that are not in a list yet.
func addMissing[T any](into, from []T) []T {
	out := slices.Clip(into)
	for _, e := range from {
		if !slices.ContainsFunc(out, func(o T) bool { return equality.Semantic.DeepEqual(o, e) }) {
			out = append(out, e)
		}
	}
	return out
}
