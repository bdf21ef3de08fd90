package controllers

import (
	"encoding/json"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// maxNote is the longest text that an Event may have, in bytes.
const maxNote = 1024

// Record records an event of any package of this module as a Kubernetes Event
// about an object, such as the ClusterVersion: its type is the reason, message
// and error are the note, and it is a warning where there is an error. Give it
// to a package's Observe:
//
//	recorder := mgr.GetEventRecorder("updates")
//	o.Observe = func(e clusterapi.Event) { controllers.Record(recorder, cv, e) }
//
// An event without a type is not recorded.
func Record(recorder events.EventRecorder, regarding runtime.Object, event slog.LogValuer) {
	var reason, message, fault string
	rest := ""
	for _, a := range slog.AnyValue(event).Resolve().Group() {
		switch a.Key {
		case "type":
			reason = a.Value.String()
		case "message":
			message = a.Value.String()
		case "error":
			fault = a.Value.String()
		case "time":
		case "data":
			if data, err := json.Marshal(a.Value.Any()); err == nil {
				rest += " data=" + string(data)
			}
		default:
			rest += " " + a.Key + "=" + a.Value.String()
		}
	}
	if reason == "" {
		return
	}
	kind, note := corev1.EventTypeNormal, message
	if fault != "" {
		kind = corev1.EventTypeWarning
		if note != "" {
			note += ": "
		}
		note += fault
	}
	if note == "" {
		note = reason
	}
	if rest != "" {
		note += " (" + rest[1:] + ")"
	}
	recorder.Eventf(regarding, nil, kind, reason, reason, "%s", bounded.Text(note, maxNote))
}
