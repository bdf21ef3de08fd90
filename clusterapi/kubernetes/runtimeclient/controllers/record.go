package controllers

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// maxNote is the longest text that an Event may have, in bytes.
const maxNote = 1024

// Record records an event of any package of this module as a Kubernetes Event
// about an object, such as the ClusterVersion: its type is the reason, message,
// error, subject and data are the note, and it is a warning if there is an error. Give it
// to a package's Observe:
//
//	recorder := mgr.GetEventRecorder("updates")
//	o.Observe = func(e clusterapi.Event) { controllers.Record(recorder, cv, e) }
//
// It ignores an event without a type.
func Record(recorder events.EventRecorder, regarding runtime.Object, e clusterapi.Event) {
	if e.Type == "" {
		return
	}
	kind, note := corev1.EventTypeNormal, e.Message
	if e.Err != nil {
		kind = corev1.EventTypeWarning
		if note != "" {
			note += ": "
		}
		note += e.Err.Error()
	}
	if note == "" {
		note = string(e.Type)
	}
	about := e.Subject
	if e.Data != nil {
		if data, err := json.Marshal(e.Data); err == nil {
			about = strings.TrimSpace(about + " " + string(data))
		}
	}
	if about != "" {
		note += " (" + about + ")"
	}
	recorder.Eventf(regarding, nil, kind, string(e.Type), string(e.Type), "%s", bounded.Text(note, maxNote))
}
