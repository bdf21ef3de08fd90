// Package annotation has the names of the annotations of nodes that actions keep.
package annotation

import "github.com/clusterupdate/clusterupdate/clusterapi"

// Prefixes of the names; the name of the action follows.
const (
	// Progress is how far an action is.
	Progress = clusterapi.AnnotationPrefix + "progress."
	// Confirmed is set when a person has done what an action waits for.
	Confirmed = clusterapi.AnnotationPrefix + "confirmed."
)
