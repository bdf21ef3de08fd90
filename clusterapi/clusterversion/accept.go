package clusterversion

import (
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// AcceptRequest changes which risks of updates the cluster accepts, as oc adm
// upgrade accept does. It is plain data.
type AcceptRequest struct {
	// Risks are the arguments of the tool, which takes one: a list of names with
	// commas. A name with a "-" behind it is accepted no more.
	Risks   []string
	Replace bool // accept these alone
	Clear   bool // accept none
}

func (r AcceptRequest) failed() string { return "unable to accept risks" }
func (r AcceptRequest) replaces() bool { return false }

// Edit implements [Request].
func (r AcceptRequest) Edit(cv *configv1.ClusterVersion) (Answer, error) {
	var out Answer
	add, remove, err := r.names()
	if err != nil {
		return out, err
	}
	if cv == nil {
		return out, noVersion("no", "OpenShift")
	}
	var current, wanted []string
	if u := cv.Spec.DesiredUpdate; u != nil {
		for _, risk := range u.AcceptRisks {
			current = append(current, risk.Name)
			if !r.Clear && !r.Replace && !remove.Has(risk.Name) {
				wanted = append(wanted, risk.Name)
			}
		}
	}
	wanted = append(wanted, sets.List(add.Difference(sets.New(wanted...)))...)
	if sets.New(current...).Equal(sets.New(wanted...)) {
		out.printf("info: Accept risks are not changed")
		return out, nil
	}
	out.ClusterVersion = cv.DeepCopy()
	var u configv1.Update // as it is, with other risks
	if old := cv.Spec.DesiredUpdate; old != nil {
		u = *old
	}
	u.AcceptRisks = nil
	for _, name := range wanted {
		u.AcceptRisks = append(u.AcceptRisks, configv1.AcceptRisk{Name: name})
	}
	SetDesired(out.ClusterVersion, u)
	out.printf("info: Accept risks are [%s]", strings.Join(wanted, ", "))
	return out, nil
}

// names reads the list of names.
func (r AcceptRequest) names() (add, remove sets.Set[string], err error) {
	usage := func(format string, args ...any) error { return refuse(RefusedUsage, "", format, args...) }
	add, remove = sets.New[string](), sets.New[string]()
	switch {
	case r.Clear && r.Replace:
		return nil, nil, usage("--clear and --replace are mutually exclusive")
	case r.Clear && len(r.Risks) > 0:
		return nil, nil, usage("--clear may not be specified with risks")
	case r.Clear:
		return add, remove, nil
	case len(r.Risks) == 0:
		return nil, nil, usage("no positional arguments given")
	case len(r.Risks) > 1:
		return nil, nil, usage("multiple positional arguments given")
	}
	for name := range strings.SplitSeq(r.Risks[0], ",") {
		name = strings.TrimSpace(name)
		stem, removes := strings.CutSuffix(name, "-")
		switch {
		case stem == "":
			return nil, nil, usage("illegal risk %q", name)
		case !removes:
			add.Insert(name)
		case r.Replace:
			return nil, nil, usage("The suffix '-' on risks is not allowed if --replace is specified")
		default:
			remove.Insert(stem)
		}
	}
	if both := sets.List(add.Intersection(remove)); len(both) > 0 {
		return nil, nil, usage("requested risks with both Risk and Risk-: %s", strings.Join(both, ","))
	}
	return add, remove, nil
}
