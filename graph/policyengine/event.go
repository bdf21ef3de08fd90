package policyengine

import (
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// The types of events of a [Refresher]. The Data of each is a [*Load].
const (
	// EventChanged: another graph is served.
	EventChanged clusterapi.EventType = "GraphChanged"
	// EventUnchanged: the graph was loaded and is the one that is served.
	EventUnchanged clusterapi.EventType = "GraphUnchanged"
	// EventFailed: the graph could not be loaded, the last one stays. The refresher
	// tries again at Load.Retry.
	EventFailed clusterapi.EventType = "LoadFailed"
	// EventRecovered: it could be loaded, after failures. EventChanged or
	// EventUnchanged follows.
	EventRecovered clusterapi.EventType = "LoadRecovered"
)

// Load is the data of the events of a [Refresher].
type Load struct {
	// Revision names the graph that is served, Nodes is how many releases it has.
	Revision string `json:"revision,omitempty"`
	Nodes    int    `json:"nodes,omitempty"`
	// Failures counts those in a row.
	Failures int `json:"failures,omitempty"`
	// Retry is when the refresher loads next.
	Retry time.Time `json:"retry,omitzero"`
}
