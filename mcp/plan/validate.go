package plan

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// takes are the arguments that a kind must have, and those that it may have.
var takes = map[StepKind]struct{ must, may []string }{
	CheckAll:              {must: []string{"checks"}, may: []string{"action", "parameters"}},
	SetPaused:             {must: []string{"pools", "paused"}, may: []string{"until", "unfinished"}},
	SetHealthChecksPaused: {must: []string{"paused"}},
	SetMaxUnavailable:     {must: []string{"pools", "maxUnavailable"}},
	CreatePool:            {must: []string{"pool", "roles"}, may: []string{"maxUnavailable"}},
	DeletePool:            {must: []string{"pool"}},
	LabelNodes:            {must: []string{"pool", "nodes"}, may: []string{"add", "remove"}},
	SetChannel:            {must: []string{"channel"}},
	UpdateCluster:         {must: []string{"version"}, may: []string{"image", "action", "parameters"}},
	UpdateOperators:       {must: []string{"version"}, may: []string{"action", "parameters"}},
	WaitPools:             {must: []string{"pools"}, may: []string{"until"}},
	WaitCluster:           {must: []string{"version"}},
	Gate:                  {must: []string{"action"}, may: []string{"parameters", "pools", "nodes"}},
	Cordon:                {must: []string{"node"}},
	Drain:                 {must: []string{"node"}},
	Uncordon:              {must: []string{"node"}},
	Hook:                  {must: []string{"action"}, may: []string{"node", "parameters"}},
	Manual:                {must: []string{"text"}, may: []string{"node"}},
	ApplyObject:           {must: []string{"object"}},
}

// asks are the fields that a kind of check must have; it has no more.
var asks = map[string][]string{
	poolsUpdated: {"pools"}, poolsHealthy: {"pools"}, poolsSameContent: {"pools"},
	poolsPaused: {"pools"}, poolsUnpaused: {"pools"},
	clusterAt: {"version"}, clusterIdle: nil, nodesReady: {"nodes"}, kubeletsAtLeast: {"nodes", "version"},
}

var stepID = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,298}[A-Za-z0-9])?$`)

// Validate returns all that is wrong with a plan by itself as one error, nil if
// nothing is. It does not look at a cluster, and does not measure the plan's size.
func (p Plan) Validate() error {
	var f faults
	if err := checkFormat("the plan", p.Version, Format); err != nil {
		f.add("%w", err)
	}
	if texts := validation.IsDNS1123Label(p.ID); texts != nil {
		f.add("id %s: %s", bounded.Quote(p.ID), strings.Join(texts, "; "))
	}
	switch p.Kind {
	case kindCanary, kindWindows, kindControlPlaneOnly, kindRHEL, kindVSphereHardware, kindCustom:
	default:
		f.add("kind %s is not known", bounded.Quote(string(p.Kind)))
	}
	seen := make(map[string]bool, len(p.Steps))
	for i := range p.Steps {
		s := &p.Steps[i]
		at := f.in(fmt.Sprintf("steps[%d]", i))
		if !stepID.MatchString(s.ID) {
			at.add("id %s is not made of letters, digits, \"-\", \"_\" and \".\", at most 300", bounded.Quote(s.ID))
		} else {
			at = f.in(fmt.Sprintf("steps[%d] (%s)", i, s.ID))
			if seen[s.ID] {
				at.add("another step has this id")
			}
			seen[s.ID] = true
		}
		s.validate(at)
	}
	return f.join()
}

func (s *Step) validate(f *faults) {
	t, known := takes[s.Kind]
	if !known {
		f.add("kind %s is not known", bounded.Quote(string(s.Kind)))
		return
	}
	judgeFields(f, "args.", string(s.Kind), given(s.Args), t.must, t.may)
	s.Args.validate(f.in("args"))
	for i, c := range s.Needs {
		c.validate(f.in(fmt.Sprintf("needs[%d]", i)))
	}
	if !s.Done.isZero() {
		s.Done.validate(f.in("done"))
	}
	if s.Timeout.Duration < 0 {
		f.add("timeout is negative: %s", s.Timeout.Duration)
	}
	if s.OnFailure != "" && s.OnFailure != stopPlan && s.OnFailure != continuePlan {
		f.add("onFailure %s is neither Stop nor Continue", bounded.Quote(string(s.OnFailure)))
	}
	switch s.Kind {
	case SetPaused:
		if s.Args.Unfinished && s.Args.Paused != nil && !*s.Args.Paused {
			f.add("args.unfinished has no meaning where pools are unpaused")
		}
	case CreatePool:
		s.validatePool(f)
	case LabelNodes:
		s.validateLabels(f)
	}
}

// given returns the JSON names of the fields of a struct that have a value, in its order.
func given(fields any) []string {
	var out []string
	v := reflect.ValueOf(fields)
	for i := range v.NumField() {
		f := v.Field(i)
		empty := f.IsZero()
		if f.Kind() == reflect.Slice || f.Kind() == reflect.Map {
			empty = f.Len() == 0
		}
		if !empty {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			out = append(out, name)
		}
	}
	return out
}

// judgeFields reports fields that must be given and are not, and given ones that may not be.
func judgeFields(f *faults, where, kind string, given, must, may []string) {
	for _, name := range must {
		if !slices.Contains(given, name) {
			f.add("%s%s is missing", where, name)
		}
	}
	for _, name := range given {
		if !slices.Contains(must, name) && !slices.Contains(may, name) {
			f.add("%s%s has no meaning for %s", where, name, kind)
		}
	}
}

func (a *Args) validate(f *faults) {
	if a.Pool != "" {
		names(f, "pool", a.Pool)
	}
	names(f, "pools", a.Pools...)
	if a.Node != "" {
		names(f, "node", a.Node)
	}
	names(f, "nodes", a.Nodes...)
	names(f, "roles", a.Roles...)
	version(f, a.Version)
	if a.MaxUnavailable != nil {
		if err := validLimit(a.MaxUnavailable); err != nil {
			f.add("maxUnavailable: %w", err)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(a.Add)) {
		label(f, "add", k)
		if texts := validation.IsValidLabelValue(a.Add[k]); texts != nil {
			f.add("add: value %s: %s", bounded.Quote(a.Add[k]), strings.Join(texts, "; "))
		}
		if slices.Contains(a.Remove, k) {
			f.add("label %s is both added and removed", fieldchange.Plain(k))
		}
	}
	for _, k := range a.Remove {
		label(f, "remove", k)
	}
	for i, c := range a.Checks {
		c.validate(f.in(fmt.Sprintf("checks[%d]", i)))
	}
	if len(a.Object) > 0 {
		validateObject(f.in("object"), a.Object)
	}
}

// validatePool checks what the API server refuses in a custom pool, and that
// the pool can have nodes.
func (s *Step) validatePool(f *faults) {
	if s.Args.Pool == mcp.PoolMaster || s.Args.Pool == mcp.PoolWorker || s.Args.Pool == mcp.PoolArbiter {
		f.add("args.pool: %s is not a custom pool", s.Args.Pool)
	}
	if s.Args.Pool != "" {
		label(f, "args.pool", mcp.LabelNodeRolePrefix+s.Args.Pool)
	}
	if len(s.Args.Roles) > 0 && !slices.Contains(s.Args.Roles, mcp.PoolWorker) {
		f.add("args.roles: All custom MachineConfigPools must inherit from the worker pool: %s is missing", mcp.PoolWorker)
	}
}

// validateLabels keeps a step from taking nodes out of all pools.
func (s *Step) validateLabels(f *faults) {
	if len(s.Args.Add)+len(s.Args.Remove) == 0 {
		f.add("args.add and args.remove are both missing")
	}
	for _, role := range []string{mcp.PoolWorker, mcp.PoolMaster, mcp.PoolArbiter} {
		if slices.Contains(s.Args.Remove, mcp.LabelNodeRolePrefix+role) {
			f.add("args.remove: the role %s is never removed", role)
		}
	}
}

func (c Check) isZero() bool { return len(given(c)) == 0 }

func (c Check) validate(f *faults) {
	fields, known := asks[c.Kind]
	if !known {
		f.add("kind %s is not known", bounded.Quote(string(c.Kind)))
		return
	}
	judgeFields(f, "", c.Kind, slices.DeleteFunc(given(c), func(name string) bool { return name == "kind" }), fields, nil)
	names(f, "pools", c.Pools...)
	names(f, "nodes", c.Nodes...)
	if c.Kind != kubeletsAtLeast {
		version(f, c.Version)
	} else if _, err := minorOf(c.Version); err != nil && c.Version != "" {
		f.add("version %s: %w", bounded.Quote(c.Version), err)
	}
}

// validLimit describes what is wrong with a maxUnavailable.
func validLimit(v *intstr.IntOrString) error {
	pool := &mcfgv1.MachineConfigPool{}
	pool.Spec.MaxUnavailable = v
	_, _, err := mcp.MaxUnavailable(pool, 100)
	return err
}

// names checks that names are those of objects, and that none comes twice.
func names(f *faults, field string, all ...string) {
	seen := make(map[string]bool, len(all))
	for _, n := range all {
		if texts := validation.IsDNS1123Subdomain(n); texts != nil {
			f.add("%s: %s: %s", field, bounded.Quote(n), strings.Join(texts, "; "))
		}
		if seen[n] {
			f.add("%s: %s comes twice", field, bounded.Quote(n))
		}
		seen[n] = true
	}
}

func label(f *faults, field, name string) {
	if texts := validation.IsQualifiedName(name); texts != nil {
		f.add("%s: label %s: %s", field, bounded.Quote(name), strings.Join(texts, "; "))
	}
}

func version(f *faults, v string) {
	if v == "" {
		return
	}
	if _, err := openshift.ParseVersion(v); err != nil {
		f.add("version %s: %w", bounded.Quote(v), err)
	}
}

// validateObject refuses what a plan cannot put back or should not contain.
func validateObject(f *faults, object map[string]any) {
	u := unstructured.Unstructured{Object: object}
	if u.GetAPIVersion() == "" || u.GetKind() == "" || u.GetName() == "" {
		f.add("apiVersion, kind and metadata.name are required")
	}
	if u.GetKind() == "Secret" && u.GetAPIVersion() == "v1" {
		f.add("a Secret has no place in a plan, which anybody may read")
	}
	if _, ok := object["status"]; ok {
		f.add("status is not written by a plan")
	}
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(meta)) {
		if !slices.Contains([]string{"name", "namespace", "labels", "annotations"}, k) {
			f.add("metadata.%s is not written by a plan", fieldchange.Plain(k))
		}
	}
	if annotations, ok := meta["annotations"].(map[string]any); ok {
		for _, k := range []string{annotationPlan, annotationBefore} {
			if _, ok := annotations[k]; ok {
				f.add("annotation %s is the plan's own", k)
			}
		}
	}
}

// faults collects what is wrong, and where.
type faults struct {
	where string
	all   *[]error
}

// maxFaults is how many faults are reported, more than anybody reads.
const maxFaults = 1000

func (f *faults) in(where string) *faults {
	if f.all == nil {
		f.all = new([]error)
	}
	if f.where != "" {
		where = f.where + "." + where
	}
	return &faults{where: where, all: f.all}
}

func (f *faults) add(format string, args ...any) {
	if f.all == nil {
		f.all = new([]error)
	}
	if len(*f.all) > maxFaults {
		return
	}
	err := fmt.Errorf(format, args...)
	if len(*f.all) == maxFaults {
		err = fmt.Errorf("it has more than %d faults", maxFaults)
	} else if f.where != "" {
		err = fmt.Errorf("%s: %w", f.where, err)
	}
	*f.all = append(*f.all, err)
}

// problems are those found so far.
func (f *faults) problems() []error {
	if f.all == nil {
		return nil
	}
	return *f.all
}

func (f *faults) join() error {
	return bounded.Errors(f.problems()...)
}
