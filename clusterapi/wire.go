package clusterapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// MaxErrorSize is the largest encoded error, in bytes: [EncodeError] returns
// no more, and [DecodeError] reads no more.
const MaxErrorSize = 256 << 10

// maxErrorText is how much of one text [EncodeError] keeps.
const maxErrorText = 16 << 10

// Types of the causes by which a Status says what it has no reason for.
const (
	causePrefix    = metav1.CauseType(AnnotationPrefix)
	causeText      = causePrefix + "text" // of the whole error, with what wraps it
	causeNoMatch   = causePrefix + "no-match"
	causeLimit     = causePrefix + "limit"
	causeUnknown   = causePrefix + "not-collected"
	causeCanceled  = causePrefix + "canceled"
	causeDeadline  = causePrefix + "deadline-exceeded"
	causeStatus    = causePrefix + "status" // there is one besides the above
	causeShortened = causePrefix + "causes-left-out"
)

// EncodeError writes an error of a [ClusterAPI] as the JSON of a metav1.Status
// (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/),
// so that a backend may stand at the other end of a wire. It keeps the text,
// what apierrors recognises with its details and causes, and whether the error
// is a NoMatch error of package meta, a [*LimitError], [ErrNotCollected],
// context.Canceled or context.DeadlineExceeded. nil becomes a Success.
//
// The result has at most [MaxErrorSize] bytes. Longer texts are cut, and the
// last causes left out, each with a note of how much is missing.
func EncodeError(err error) []byte {
	if err == nil {
		return marshalStatus(metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusOK})
	}
	s := metav1.Status{Code: http.StatusInternalServerError}
	var own []metav1.StatusCause
	add := func(code int32, reason metav1.StatusReason, t metav1.CauseType, message string) {
		if len(own) == 0 {
			s.Code, s.Reason = code, reason
		}
		own = append(own, metav1.StatusCause{Type: t, Message: message})
	}
	var (
		kind     *meta.NoKindMatchError
		resource *meta.NoResourceMatchError
		limit    *LimitError
		api      apierrors.APIStatus
	)
	switch {
	case errors.As(err, &kind):
		add(http.StatusNotFound, metav1.StatusReasonNotFound, causeNoMatch, "")
		own[0].Field = encodeNames(append([]string{"kind", kind.GroupKind.Group, kind.GroupKind.Kind}, kind.SearchedVersions...))
	case errors.As(err, &resource):
		add(http.StatusNotFound, metav1.StatusReasonNotFound, causeNoMatch, "")
		r := resource.PartialResource
		own[0].Field = encodeNames([]string{"resource", r.Group, r.Version, r.Resource})
	}
	if errors.As(err, &limit) {
		add(http.StatusBadRequest, metav1.StatusReasonBadRequest, causeLimit, strconv.FormatInt(limit.Max, 10))
		own[len(own)-1].Field = encodeNames([]string{limit.Where, limit.Limit, limit.What})
	}
	if errors.Is(err, ErrNotCollected) {
		add(http.StatusNotFound, metav1.StatusReasonNotFound, causeUnknown, "")
	}
	if errors.Is(err, context.Canceled) {
		add(http.StatusRequestTimeout, metav1.StatusReasonTimeout, causeCanceled, "")
	}
	if errors.Is(err, context.DeadlineExceeded) {
		add(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, causeDeadline, "")
	}
	var details metav1.StatusDetails
	if errors.As(err, &api) {
		code, reason := s.Code, s.Reason
		s = api.Status()
		if s.Details != nil {
			details = *s.Details
		}
		details.Causes = slices.DeleteFunc(slices.Clone(details.Causes), isOwnCause)
		mark := metav1.StatusCause{Type: causeStatus}
		if s.Reason == "" && len(own) > 0 { // for those who know reasons alone
			mark.Field, mark.Message = "unknown", strconv.Itoa(int(s.Code))
			s.Code, s.Reason = code, reason
		}
		own = append(own, mark)
	} else {
		s.Message = err.Error()
	}
	if text := err.Error(); text != s.Message {
		own = append(own, metav1.StatusCause{Type: causeText, Message: bounded.Text(text, maxErrorText)})
	}
	s.TypeMeta, s.ListMeta, s.Status = metav1.TypeMeta{}, metav1.ListMeta{}, metav1.StatusFailure
	s.Message = bounded.Text(s.Message, maxErrorText)
	details.Name = bounded.Text(details.Name, 1024)
	details.Group, details.Kind = bounded.Text(details.Group, 1024), bounded.Text(details.Kind, 1024)
	return fit(s, details, own)
}

// fit encodes a status with as many causes as there is room for, ours first.
func fit(s metav1.Status, details metav1.StatusDetails, own []metav1.StatusCause) []byte {
	theirs := details.Causes
	for n := len(theirs); ; n /= 2 {
		details.Causes = own
		if n < len(theirs) {
			left := metav1.StatusCause{Type: causeShortened, Message: strconv.Itoa(len(theirs) - n)}
			details.Causes = append(slices.Clip(own), left)
		}
		for _, c := range theirs[:n] {
			c.Message, c.Field = bounded.Text(c.Message, maxErrorText), bounded.Text(c.Field, 1024)
			details.Causes = append(slices.Clip(details.Causes), c)
		}
		s.Details = &details
		if data := marshalStatus(s); len(data) <= MaxErrorSize || n == 0 {
			return data
		}
	}
}

func marshalStatus(s metav1.Status) []byte {
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	data, err := json.Marshal(s)
	if err != nil { // texts and numbers alone: it cannot fail
		return []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`)
	}
	return data
}

// encodeNames joins names in a way that can be taken apart.
func encodeNames(names []string) string {
	const most = 16
	if len(names) > most {
		names = names[:most]
	}
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strconv.QuoteToASCII(bounded.Text(name, 256))
	}
	return strings.Join(out, " ")
}

func decodeNames(text string) []string {
	var out []string
	for text != "" {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return out
		}
		name, err := strconv.Unquote(quoted)
		if err != nil {
			return out
		}
		out = append(out, name)
		text = strings.TrimPrefix(text[len(quoted):], " ")
	}
	return out
}

func isOwnCause(c metav1.StatusCause) bool {
	return strings.HasPrefix(string(c.Type), string(causePrefix))
}

// DecodeError reads what [EncodeError] wrote, or any other metav1.Status, and
// returns an error of which the same is true: its text, what apierrors and
// meta recognise in it, and what errors.Is and errors.As find. A Success is
// nil.
//
// What is not a Status, or has more than [MaxErrorSize] bytes, is an error of
// its own, which apierrors.IsInternalError recognises and which quotes the
// beginning of it.
//
// Where the error of a context comes back, it is that of the other end's
// context: a caller whose own context goes on may take it for a fault of the
// wire.
func DecodeError(data []byte) error {
	if len(data) > MaxErrorSize {
		return undecodable(fmt.Sprintf("it has %d bytes, more than %d", len(data), MaxErrorSize), data)
	}
	var s metav1.Status
	if err := json.Unmarshal(data, &s); err != nil {
		return undecodable(err.Error(), data)
	}
	switch {
	case s.Kind != "" && s.Kind != "Status":
		return undecodable(fmt.Sprintf("its kind is %q, not Status", bounded.Text(s.Kind, 64)), data)
	case s.Status == metav1.StatusSuccess:
		return nil
	case s.Status != metav1.StatusFailure:
		return undecodable("its status is neither Success nor Failure", data)
	}
	var causes []metav1.StatusCause
	if s.Details != nil {
		causes = s.Details.Causes
	}
	out := &remoteError{text: s.Message}
	status := !slices.ContainsFunc(causes, isOwnCause)
	for _, c := range causes {
		names := decodeNames(c.Field)
		switch c.Type {
		case causeText:
			out.text = c.Message
		case causeStatus:
			status = true
			if c.Field == "unknown" {
				was, _ := strconv.ParseInt(c.Message, 10, 32)
				s.Code, s.Reason = int32(was), metav1.StatusReasonUnknown
			}
		case causeNoMatch:
			out.causes = append(out.causes, noMatch(names))
		case causeLimit:
			most, err := strconv.ParseInt(c.Message, 10, 64)
			if err == nil && len(names) == 3 {
				out.causes = append(out.causes, &LimitError{Where: names[0], Limit: names[1], What: names[2], Max: most})
			}
		case causeUnknown:
			out.causes = append(out.causes, ErrNotCollected)
		case causeCanceled:
			out.causes = append(out.causes, context.Canceled)
		case causeDeadline:
			out.causes = append(out.causes, context.DeadlineExceeded)
		}
	}
	if status {
		if s.Details != nil {
			s.Details = cleanDetails(*s.Details)
		}
		out.causes = append(out.causes, &apierrors.StatusError{ErrStatus: s})
	}
	if len(out.causes) == 1 && out.causes[0].Error() == out.text {
		return out.causes[0]
	}
	return out
}

// cleanDetails leaves out our causes, but for the note of those left out.
func cleanDetails(d metav1.StatusDetails) *metav1.StatusDetails {
	var kept []metav1.StatusCause
	for _, c := range d.Causes {
		if c.Type == causeShortened {
			kept = append(kept, metav1.StatusCause{Message: "and " + bounded.Text(c.Message, 32) + " more"})
		} else if !isOwnCause(c) {
			kept = append(kept, c)
		}
	}
	d.Causes = kept
	if d.Name == "" && d.Group == "" && d.Kind == "" && d.UID == "" && len(kept) == 0 && d.RetryAfterSeconds == 0 {
		return nil
	}
	return &d
}

func noMatch(names []string) error {
	switch {
	case len(names) >= 3 && names[0] == "kind":
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: names[1], Kind: names[2]}, SearchedVersions: names[3:]}
	case len(names) == 4 && names[0] == "resource":
		return &meta.NoResourceMatchError{PartialResource: schema.GroupVersionResource{Group: names[1], Version: names[2], Resource: names[3]}}
	}
	return &meta.NoKindMatchError{}
}

// undecodable quotes what should have been a Status.
func undecodable(why string, data []byte) error {
	return apierrors.NewInternalError(fmt.Errorf("clusterapi: an error was sent that cannot be decoded: %s: %q", bounded.Text(why, 256), bounded.Text(string(data), 256)))
}

// remoteError has the text of an error of the other end, and what can be told
// of it.
type remoteError struct {
	text   string
	causes []error
}

func (e *remoteError) Error() string   { return e.text }
func (e *remoteError) Unwrap() []error { return e.causes }
