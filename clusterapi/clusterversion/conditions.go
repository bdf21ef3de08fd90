package clusterversion

import (
	configv1 "github.com/openshift/api/config/v1"
)

// Types of conditions of a ClusterVersion that github.com/openshift/api does
// not name.
const (
	// ConditionFailing reports that an update or the upkeep of a release is in
	// trouble.
	ConditionFailing                       configv1.ClusterStatusConditionType = "Failing"
	ConditionInvalid                       configv1.ClusterStatusConditionType = "Invalid"
	ConditionReleaseAccepted               configv1.ClusterStatusConditionType = "ReleaseAccepted"
	ConditionImplicitlyEnabledCapabilities configv1.ClusterStatusConditionType = "ImplicitlyEnabledCapabilities"
)

// MaxMessage is how many bytes of a message the status of a ClusterVersion holds.
// The library cuts what servers, objects and releases say to it.
const MaxMessage = 32 << 10
