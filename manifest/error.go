package manifest

import (
	"strconv"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// ReasonPayloadIntegrity is the reason of an [Error] for a payload with faults
// in its manifests.
const ReasonPayloadIntegrity = "UpdatePayloadIntegrity"

// Error is a fault of a payload. [Load] returns one for the whole payload,
// with the reason UpdatePayloadIntegrity, whose Faults are one per faulty
// file. Its text is the one that OpenShift users search for, and so has no
// place for the document's number: see [Error.Position]. Long texts are cut.
type Error struct {
	// Reason is a word for conditions; empty for the fault of one file.
	Reason string
	// File is the path of the faulty file within the payload; empty for the
	// payload as a whole.
	File string
	// Document is the place of the faulty object among the objects of its
	// file, from 1; empty documents are not counted. 0: the file as a whole.
	Document int
	// Err is the cause; its text is the error's text.
	Err error
	// Faults are the faults found, in the order of the files; nil for the
	// fault of one file.
	Faults []*Error
}

// Error returns the text of the cause.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause and the single faults.
func (e *Error) Unwrap() []error {
	errs := make([]error, 0, 1+len(e.Faults))
	errs = append(errs, e.Err)
	for _, f := range e.Faults {
		errs = append(errs, f)
	}
	return errs
}

// Position says where the fault is: "FILE", "FILE, document N" or, for a
// payload as a whole, the empty text.
func (e *Error) Position() string {
	if e.Document == 0 {
		return e.File
	}
	return e.File + ", document " + strconv.Itoa(e.Document)
}

const (
	// maxFaultText is how long the text of one fault may be: those of the JSON
	// decoder quote the whole object.
	maxFaultText = 4 << 10
	// maxWarningText is how long the message of a warning may be.
	maxWarningText = 1 << 10
)

// short cuts the text of an error.
func short(err error) error {
	text := err.Error()
	if len(text) <= maxFaultText {
		return err
	}
	return &textError{text: bounded.Text(text, maxFaultText), err: err}
}

// textError is an error with its own text.
type textError struct {
	text string
	err  error
}

func (e *textError) Error() string { return e.text }
func (e *textError) Unwrap() error { return e.err }
