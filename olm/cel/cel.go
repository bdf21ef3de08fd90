package cel

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/olm"
)

// Options bound evaluation. The zero value is useful.
type Options struct {
	// CostLimit is the largest cost of one evaluation in the units of cel-go,
	// about one for each step and each element passed over; 0: 10,000,000. An
	// evaluation that costs more does not match.
	CostLimit uint64
	// MaxRules is how many compiled rules are remembered; 0: 10,000. Beyond,
	// rules are compiled each time.
	MaxRules int
}

// Evaluator compiles the rules of cel constraints and remembers them. It is
// safe for concurrent use.
type Evaluator struct {
	env     *cel.Env
	options Options

	mu    sync.Mutex
	rules map[string]compiled
}

type compiled struct {
	test func([]olm.Property) bool
	err  error
}

var _ olm.CELEvaluator = (*Evaluator)(nil)

// New returns an evaluator. The error names an option that is negative.
func New(o Options) (*Evaluator, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	if o.CostLimit == 0 {
		o.CostLimit = 10_000_000
	}
	if o.MaxRules == 0 {
		o.MaxRules = 10_000
	}
	env, err := cel.NewEnv(
		cel.Variable("properties", cel.ListType(cel.MapType(cel.StringType, cel.DynType))),
		cel.Function("semver_compare",
			cel.Overload("semver_compare_any_any", []*cel.Type{cel.DynType, cel.DynType}, cel.IntType, cel.BinaryBinding(semverCompare))),
	)
	if err != nil {
		return nil, fmt.Errorf("cel: %w", err)
	}
	return &Evaluator{env: env, options: o, rules: make(map[string]compiled)}, nil
}

// errNotBool is in the words of OLM.
var errNotBool = errors.New("cel expressions must have type Bool")

// Compile returns the test of a rule. The error explains why the rule is not a
// boolean expression, and where.
func (e *Evaluator) Compile(rule string) (func(properties []olm.Property) bool, error) {
	e.mu.Lock()
	c, ok := e.rules[rule]
	e.mu.Unlock()
	if ok {
		return c.test, c.err
	}
	c.test, c.err = e.compile(rule)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.rules) < e.options.MaxRules {
		e.rules[rule] = c
	}
	return c.test, c.err
}

func (e *Evaluator) compile(rule string) (func([]olm.Property) bool, error) {
	ast, issues := e.env.Compile(rule)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	if !ast.OutputType().IsExactType(cel.BoolType) {
		return nil, errNotBool
	}
	program, err := e.env.Program(ast, cel.CostLimit(e.options.CostLimit))
	if err != nil {
		return nil, err
	}
	return func(properties []olm.Property) bool {
		result, _, err := program.Eval(map[string]any{"properties": decode(properties)})
		if err != nil {
			return false
		}
		matches, ok := result.Value().(bool)
		return ok && matches
	}, nil
}

// decode makes the variable of the rules. A value that is not JSON counts as
// absent, as it does for other constraints.
func decode(properties []olm.Property) []map[string]any {
	values := make([]map[string]any, 0, len(properties))
	for _, p := range properties {
		var value any
		if json.Unmarshal(p.Value, &value) == nil {
			values = append(values, map[string]any{"type": p.Type, "value": value})
		}
	}
	return values
}

func semverCompare(a, b ref.Val) ref.Val {
	x, err := semver.ParseTolerant(fmt.Sprint(a.Value()))
	if err != nil {
		return types.WrapErr(err)
	}
	y, err := semver.ParseTolerant(fmt.Sprint(b.Value()))
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Int(x.Compare(y))
}
