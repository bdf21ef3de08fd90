package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// maxBytes is the largest size, in bytes, of a plan, and of a plan together with
// its progress: they are kept in a ConfigMap, which an API server stores up to 1
// MiB.
const maxBytes = 900 << 10

// LimitError reports that a plan, or its record in the cluster, is too large. Where
// is "plan" or "record".
type LimitError = limit.LimitError

func tooLarge(what string) error {
	return &LimitError{Where: what, Max: maxBytes, What: "bytes"}
}

// Encode writes a plan as JSON, indented, with a newline at the end. Lists of more than 50
// nodes become ranges, as in worker-{0-99}, and steps that repeat for more than 50 nodes are
// written once. It fails if the plan is not valid ([Plan.Validate]), with all that is wrong,
// and with a [*LimitError] if it is too large to be recorded.
func Encode(p Plan) ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	folded, err := p.fold()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(folded); err != nil {
		return nil, fmt.Errorf("plan %s: %w", p.ID, err)
	}
	if b.Len() > maxBytes {
		return nil, tooLarge("plan")
	}
	return b.Bytes(), nil
}

// Decode reads a plan. It is strict: names are case-sensitive, and fields that
// are not known or come twice are errors, as is a newer format and all that
// [Plan.Validate] finds. All that is wrong comes together. Data past 900 KiB
// is a [*LimitError].
func Decode(data []byte) (Plan, error) {
	if len(data) > maxBytes {
		return Plan{}, tooLarge("plan")
	}
	// A newer format may have fields that this one does not know.
	var head struct {
		Version int `json:"version"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &head); err != nil {
		return Plan{}, unfit(data, err)
	}
	if err := checkFormat("plan", head.Version, Format); err != nil {
		return Plan{}, err
	}
	var j jsonPlan
	if err := limit.JSON(data, &j); err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	faults, err := kjson.UnmarshalStrict(data, &j)
	if err != nil {
		return Plan{}, unfit(data, err)
	}
	errs := make([]error, 0, len(faults))
	for _, f := range faults {
		errs = append(errs, fmt.Errorf("plan: %w", f))
	}
	p, err := j.unfold()
	if err != nil {
		return Plan{}, bounded.Errors(append(errs, fmt.Errorf("plan: %w", err))...)
	}
	if err := bounded.Errors(append(errs, p.Validate())...); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// unfit makes the error of a decoder one that names the place: by line and column,
// or by the names of fields, for all that does not fit.
func unfit(data []byte, err error) error {
	if is, offset := kjson.SyntaxErrorOffset(err); is {
		before := data[:min(max(int(offset)-1, 0), len(data))]
		line, column := bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n')
		return fmt.Errorf("plan: %w (line %d, column %d)", err, line, column)
	}
	errs := misfits(nil, "", data, reflect.TypeFor[jsonPlan]())
	if len(errs) == 0 {
		errs = append(errs, err)
	}
	for i, err := range errs {
		errs[i] = fmt.Errorf("plan: %w", err)
	}
	return bounded.Errors(errs...)
}

// misfits appends the values of a JSON text that do not fit a type, each with where
// it is. A decoder reports only the first one, without its step.
func misfits(errs []error, where string, text []byte, t reflect.Type) []error {
	if len(errs) >= maxFaults {
		return errs // more than anybody reads
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	into := reflect.New(t).Interface()
	if _, itself := into.(json.Unmarshaler); !itself && string(text) != "null" {
		var fields map[string]json.RawMessage
		var items []json.RawMessage
		switch {
		case t.Kind() == reflect.Struct && json.Unmarshal(text, &fields) == nil:
			var id string
			isStep := where != "" && !strings.HasSuffix(where, ")") && json.Unmarshal(fields["id"], &id) == nil
			if isStep && stepID.MatchString(id) {
				where += " (" + id + ")"
			}
			for i := range t.NumField() {
				if t.Field(i).Anonymous {
					errs = misfits(errs, where, text, t.Field(i).Type)
				}
				name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
				if value, there := fields[name]; there {
					errs = misfits(errs, strings.TrimPrefix(where+"."+name, "."), value, t.Field(i).Type)
				}
			}
			return errs
		case t == reflect.TypeFor[map[string]string]() && json.Unmarshal(text, &fields) == nil:
			for _, name := range slices.Sorted(maps.Keys(fields)) {
				errs = misfits(errs, where+"."+fieldchange.Plain(name), fields[name], t.Elem())
			}
			return errs
		case t.Kind() == reflect.Slice && json.Unmarshal(text, &items) == nil:
			for i, value := range items {
				errs = misfits(errs, fmt.Sprintf("%s[%d]", where, i), value, t.Elem())
			}
			return errs
		}
	}
	err := json.Unmarshal(text, into)
	if err == nil {
		return errs
	}
	if is, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s in place of %s", is.Value, wanted(t))
	}
	if where != "" {
		err = fmt.Errorf("%s: %w", where, err)
	}
	return append(errs, err)
}

// wanted is what JSON has for a type.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	}
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		return `a duration such as "1h30m"`
	case reflect.TypeFor[metav1.Time]():
		return `a time such as "2026-01-02T15:04:05Z"`
	case reflect.TypeFor[intstr.IntOrString]():
		return `a whole number or a percentage such as "10%"`
	}
	return "an object"
}

// checkFormat describes what is wrong with a format version.
func checkFormat(what string, version, newest int) error {
	switch {
	case version > newest:
		return fmt.Errorf("%s has format version %d; this program reads versions up to %d", what, version, newest)
	case version < 1:
		return fmt.Errorf("%s has no format version: field version must be 1 to %d", what, newest)
	}
	return nil
}

// hash is what a record keeps of the plan's text.
func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
