package clusterapi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// nature is all that a program can ask of an error.
type nature struct {
	Text                                                    string
	Reason                                                  metav1.StatusReason
	NoMatch, NoKind, NoResource                             bool
	Limit                                                   clusterapi.LimitError
	NotCollected, Canceled, Deadline, NotFound, HasNoStatus bool
	Status                                                  metav1.Status
	RetryAfter                                              int
}

func natureOf(err error) nature {
	n := nature{
		Text: err.Error(), Reason: apierrors.ReasonForError(err), NoMatch: meta.IsNoMatchError(err),
		NotCollected: errors.Is(err, clusterapi.ErrNotCollected), Canceled: errors.Is(err, context.Canceled),
		Deadline: errors.Is(err, context.DeadlineExceeded), NotFound: apierrors.IsNotFound(err), HasNoStatus: true,
	}
	var limit *clusterapi.LimitError
	if errors.As(err, &limit) {
		n.Limit = *limit
	}
	var kind *meta.NoKindMatchError
	var resource *meta.NoResourceMatchError
	n.NoKind, n.NoResource = errors.As(err, &kind), errors.As(err, &resource)
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		n.Status, n.HasNoStatus = status.Status(), false
		n.Status.TypeMeta = metav1.TypeMeta{}
		if n.Status.Code == 0 {
			n.Status.Code = 500
		}
	}
	n.RetryAfter, _ = apierrors.SuggestsClientDelay(err)
	return n
}

func TestErrorsOverAWire(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "d", field.ErrorList{
		field.Invalid(field.NewPath("spec", "replicas"), -1, "must not be negative"),
		field.Required(field.NewPath("spec", "selector"), "is required"),
	})
	noKind := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "example.com", Kind: `W "x" y`}, SearchedVersions: []string{"v1", "v2"}}
	noResource := &meta.NoResourceMatchError{PartialResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}}
	limit := clusterapi.TooMany(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, 7)
	plain := errors.New("the network is down")
	for name, err := range map[string]error{
		"not found":          apierrors.NewNotFound(pods, "p"),
		"already exists":     apierrors.NewAlreadyExists(pods, "p"),
		"conflict":           apierrors.NewConflict(pods, "p", errors.New("modified")),
		"invalid":            invalid,
		"wrapped invalid":    fmt.Errorf("cluster east: %w", invalid),
		"bad request":        apierrors.NewBadRequest("no"),
		"forbidden":          apierrors.NewForbidden(pods, "p", errors.New("no")),
		"too many":           apierrors.NewTooManyRequests("later", 17),
		"internal":           apierrors.NewInternalError(errors.New("oops")),
		"no reason":          &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Message: "odd", Code: 500}},
		"no kind":            noKind,
		"wrapped no kind":    fmt.Errorf("cluster east: %w", noKind),
		"no resource":        noResource,
		"limit":              limit,
		"wrapped limit":      fmt.Errorf("cluster east: %w", limit),
		"not collected":      fmt.Errorf("Pods: %w", clusterapi.ErrNotCollected),
		"canceled":           context.Canceled,
		"wrapped canceled":   fmt.Errorf("Get: %w", context.Canceled),
		"deadline":           fmt.Errorf("Get: %w", context.DeadlineExceeded),
		"plain":              plain,
		"wrapped plain":      fmt.Errorf("Get: %w", plain),
		"several":            errors.Join(apierrors.NewNotFound(pods, "p"), context.Canceled, clusterapi.ErrNotCollected),
		"no reason, several": errors.Join(&apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Message: "odd"}}, context.Canceled),
		"empty":              errors.New(""),
	} {
		t.Run(name, func(t *testing.T) {
			data := clusterapi.EncodeError(err)
			got := clusterapi.DecodeError(data)
			if got == nil {
				t.Fatalf("%s became nil", data)
			}
			want := natureOf(err)
			n := natureOf(got)
			if want.HasNoStatus && n.Status.Reason == "" { // a Status without a reason says nothing more
				n.HasNoStatus, n.Status = true, metav1.Status{}
			}
			if diff := cmp.Diff(want, n); diff != "" {
				t.Errorf("%s (-want +got):\n%s", data, diff)
			}
			if again := clusterapi.DecodeError(clusterapi.EncodeError(got)); natureOf(again).Text != want.Text {
				t.Errorf("the second time: %v, want %v", again, err)
			}
		})
	}
}

func TestNoErrorOverAWire(t *testing.T) {
	if err := clusterapi.DecodeError(clusterapi.EncodeError(nil)); err != nil {
		t.Errorf("nil became %v", err)
	}
}

// What any API server sends is understood, and nothing else is.
func TestDecodeError(t *testing.T) {
	err := clusterapi.DecodeError([]byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"p\" not found","reason":"NotFound","details":{"name":"p","kind":"pods"},"code":404}`))
	if !apierrors.IsNotFound(err) || err.Error() != `pods "p" not found` {
		t.Errorf("got %v", err)
	}
	for text, part := range map[string]string{
		"":                          "unexpected end",
		"<html>502 Bad Gateway":     "<html>502",
		`{"kind":"Pod"}`:            `its kind is "Pod"`,
		`{"kind":"Status"}`:         "neither Success nor Failure",
		`[]`:                        "cannot unmarshal array",
		`{"status":"failure"}`:      "neither Success nor Failure",
		strings.Repeat("x", 300000): "more than 262144",
	} {
		err := clusterapi.DecodeError([]byte(text))
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), part) || len(err.Error()) > 2000 {
			t.Errorf("%.40q: got %v, want an internal error with %q", text, err, part)
		}
	}
}

func TestEncodedErrorsAreBounded(t *testing.T) {
	long := strings.Repeat("€", 1<<20)
	many := make(field.ErrorList, 5000)
	for i := range many {
		many[i] = field.Invalid(field.NewPath("spec", "list").Index(i), "x", strings.Repeat("y", 100))
	}
	for name, err := range map[string]error{
		"text":         errors.New(long),
		"wrapped":      fmt.Errorf("%s: %w", long, apierrors.NewNotFound(schema.GroupResource{Resource: long}, long)),
		"causes":       apierrors.NewInvalid(schema.GroupKind{Kind: "X"}, "x", many),
		"kind":         &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: long, Kind: long}, SearchedVersions: []string{long}},
		"control text": errors.New(strings.Repeat("\x01", 1<<20)),
	} {
		data := clusterapi.EncodeError(err)
		got := clusterapi.DecodeError(data)
		if len(data) > clusterapi.MaxErrorSize || apierrors.ReasonForError(got) != apierrors.ReasonForError(err) || meta.IsNoMatchError(got) != meta.IsNoMatchError(err) {
			t.Errorf("%s: %d bytes, %.100v", name, len(data), got)
		}
		if name == "causes" {
			var status apierrors.APIStatus
			if !errors.As(got, &status) || !strings.Contains(status.Status().Details.Causes[0].Message, " more") {
				t.Errorf("the causes left out are not mentioned: %.300s", data)
			}
		}
	}
}

func FuzzDecodeError(f *testing.F) {
	f.Add(clusterapi.EncodeError(nil))
	f.Add(clusterapi.EncodeError(apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p")))
	f.Add(clusterapi.EncodeError(fmt.Errorf("x: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "X"}})))
	f.Add(clusterapi.EncodeError(errors.Join(&clusterapi.LimitError{Max: 1}, context.Canceled, clusterapi.ErrNotCollected)))
	f.Add([]byte(`{"status":"Failure","details":{"causes":[{"reason":"clusterupdate.github.io/limit","field":"\"a","message":"-"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		err := clusterapi.DecodeError(data)
		if err == nil {
			return
		}
		text := err.Error()
		encoded := clusterapi.EncodeError(err)
		if len(encoded) > clusterapi.MaxErrorSize {
			t.Errorf("%d bytes", len(encoded))
		}
		again := clusterapi.DecodeError(encoded)
		if again == nil {
			t.Fatalf("%v became nil", err)
		}
		if len(text) < 1000 && again.Error() != text {
			t.Errorf("%q became %q", text, again.Error())
		}
		if apierrors.ReasonForError(again) != apierrors.ReasonForError(err) || meta.IsNoMatchError(again) != meta.IsNoMatchError(err) {
			t.Errorf("%v became of another class: %s", err, encoded)
		}
	})
}
