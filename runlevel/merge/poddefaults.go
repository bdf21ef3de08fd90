package merge

import (
	corev1 "k8s.io/api/core/v1"
)

const (
	volumeMode     = 0o644
	tokenExpiresIn = 60 * 60 // seconds
)

// podDefaults writes out what a server fills in, of what is enforced.
func podDefaults(p *corev1.PodSpec) {
	setDefault(&p.DNSPolicy, corev1.DNSClusterFirst)
	setPointer(&p.TerminationGracePeriodSeconds, 30)
	setPointer(&p.SecurityContext, corev1.PodSecurityContext{})
	for _, list := range [][]corev1.Container{p.InitContainers, p.Containers} {
		for i := range list {
			containerDefaults(&list[i], p.HostNetwork)
		}
	}
	for i := range p.Volumes {
		volumeDefaults(&p.Volumes[i].VolumeSource)
	}
}

func containerDefaults(c *corev1.Container, hostNetwork bool) {
	probeDefaults(c.LivenessProbe)
	probeDefaults(c.ReadinessProbe)
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			setDefault(&from.FieldRef.APIVersion, "v1")
		}
	}
	for i := range c.Ports {
		p := &c.Ports[i]
		setDefault(&p.Protocol, corev1.ProtocolTCP)
		if hostNetwork {
			setDefault(&p.HostPort, p.ContainerPort)
		}
	}
	s := c.SecurityContext
	if s == nil {
		return
	}
	if s.Capabilities != nil && len(s.Capabilities.Add)+len(s.Capabilities.Drop) == 0 {
		s.Capabilities = nil
	}
	if *s == (corev1.SecurityContext{}) {
		c.SecurityContext = nil
	}
}

func probeDefaults(p *corev1.Probe) {
	if p == nil {
		return
	}
	setDefault(&p.TimeoutSeconds, 1)
	setDefault(&p.PeriodSeconds, 10)
	setDefault(&p.SuccessThreshold, 1)
	setDefault(&p.FailureThreshold, 3)
	if p.HTTPGet != nil {
		setDefault(&p.HTTPGet.Scheme, corev1.URISchemeHTTP)
		setDefault(&p.HTTPGet.Path, "/")
	}
	if p.GRPC != nil {
		setPointer(&p.GRPC.Service, "")
	}
}

func volumeDefaults(v *corev1.VolumeSource) {
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.HostPath != nil {
		setPointer(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Secret != nil {
		setPointer(&v.Secret.DefaultMode, volumeMode)
	}
	if v.ConfigMap != nil {
		setPointer(&v.ConfigMap.DefaultMode, volumeMode)
	}
	if v.DownwardAPI != nil {
		setPointer(&v.DownwardAPI.DefaultMode, volumeMode)
		fieldRefDefaults(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		setPointer(&v.Projected.DefaultMode, volumeMode)
		for _, source := range v.Projected.Sources {
			if source.DownwardAPI != nil {
				fieldRefDefaults(source.DownwardAPI.Items)
			}
			if source.ServiceAccountToken != nil {
				setPointer(&source.ServiceAccountToken.ExpirationSeconds, tokenExpiresIn)
			}
		}
	}
}

func fieldRefDefaults(files []corev1.DownwardAPIVolumeFile) {
	for _, file := range files {
		if file.FieldRef != nil {
			setDefault(&file.FieldRef.APIVersion, "v1")
		}
	}
}
