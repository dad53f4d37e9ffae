package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
)

// Variables of a health expression.
const (
	feedbackVariable   = "feedback"
	conditionsVariable = "conditions"
)

const (
	// maxCost is the limit of one evaluation of an expression, in CEL's own units. It is enough for two nested loops
	// over everything that an agent may return, but not for three.
	maxCost = 100_000
	// maxElements is the assumed length of a list, map or text in the estimate of an
	// expression's cost.
	maxElements = 64
	// maxExpression is the length of an expression in characters, as its schema counts.
	maxExpression = 1024
)

type expression struct {
	text    string
	program cel.Program
	// needs are the names of the feedback without which the expression cannot be evaluated.
	needs []string
}

// refusal says why an expression cannot be used.
type refusal struct{ message, hint string }

const hintVariables = "it can read feedback, conditions, metadata, apiVersion and kind"

// newCELEnvironment declares the values that a health expression can read and the functions that it can call. The
// functions are those of Flux's healthCheckExprs, so that an expression has the same meaning in both.
func newCELEnvironment() (*cel.Env, error) {
	env, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(),
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		ext.Strings(), ext.Sets(), ext.Encoders(),
		cel.Variable(feedbackVariable, cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable(conditionsVariable, cel.MapType(cel.StringType, cel.MapType(cel.StringType, cel.StringType))),
		cel.Variable(metadataKey, cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable(apiVersionKey, cel.StringType),
		cel.Variable(kindKey, cel.StringType),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot set up CEL: %w", err)
	}
	return env, nil
}

// compileExpression returns the expression, or why it is refused: it does not parse, is not boolean, reads an unknown
// field, does not depend on the cluster's report, or may cost too much.
func compileExpression(env *cel.Env, text string) (*expression, *refusal) {
	if length := utf8.RuneCountInString(text); length > maxExpression {
		return nil, &refusal{fmt.Sprintf("has %d characters, at most %d are allowed", length, maxExpression), "evaluate fewer values, or several objects one by one"}
	}
	compiled, issues := env.Compile(text)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		message := strings.TrimSuffix(strings.Join(strings.Fields(first.Message), " "), " (in container '')")
		return nil, &refusal{fmt.Sprintf("column %d: %s", first.Location.Column()+1, message), hintVariables}
	}
	if !compiled.OutputType().IsExactType(cel.BoolType) {
		return nil, &refusal{"is not a boolean but " + typeName(compiled.OutputType()), "compare it, as in feedback.ready == true"}
	}
	if why := cmp.Or(unknownField(compiled), constant(env, compiled)); why != nil {
		return nil, why
	}
	cost, err := env.EstimateCost(compiled, sizes{})
	if err != nil {
		return nil, &refusal{"its cost cannot be estimated: " + err.Error(), ""}
	}
	if cost.Max > maxCost {
		return nil, &refusal{fmt.Sprintf("may cost %d, at most %d is allowed", cost.Max, maxCost), "nest fewer loops"}
	}
	program, err := env.Program(compiled, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost))
	if err != nil {
		return nil, &refusal{err.Error(), hintVariables}
	}
	return &expression{text: text, program: program, needs: neededFeedback(compiled)}, nil
}

func typeName(t *cel.Type) string {
	if t.Kind() == types.DynKind {
		return "of a type that only shows on the cluster"
	}
	return "of type " + t.String()
}

// constant refuses an expression whose value does not depend on the cluster.
func constant(env *cel.Env, compiled *cel.Ast) *refusal {
	const hint = "read what the cluster reports, as in feedback.ReadyReplicas >= 1"
	if !reads(compiled) {
		return &refusal{"reads neither feedback nor conditions, so that it is always the same", hint}
	}
	folding, err := cel.NewConstantFoldingOptimizer()
	if err != nil {
		return &refusal{err.Error(), ""}
	}
	// Folding refuses expressions that always fail, such as a division by zero.
	folded, issues := cel.NewStaticOptimizer(folding).Optimize(env, compiled)
	if issues.Err() != nil {
		return &refusal{"fails whatever the cluster reports: " + strings.Join(strings.Fields(issues.Errors()[0].Message), " "), hint}
	}
	root := folded.NativeRep().Expr()
	if value, ok := root.AsLiteral().(types.Bool); ok && root.Kind() == ast.LiteralKind {
		return &refusal{fmt.Sprintf("is always %v", bool(value)), hint}
	}
	return nil
}

// unknownField refuses an expression that reads a field that conditions or metadata never have. Such an expression
// has no value on any cluster, and all clusters would wait.
func unknownField(compiled *cel.Ast) *refusal {
	var found *refusal
	check := func(of ast.Expr, field string) {
		known, what := []string{"status", "reason", "message"}, "a condition"
		switch whole, _ := entryOf(of); {
		case of.Kind() == ast.IdentKind && of.AsIdent() == metadataKey:
			known, what = []string{nameKey, namespaceKey}, metadataKey
		case whole == nil || whole.Kind() != ast.IdentKind || whole.AsIdent() != conditionsVariable:
			return
		}
		if !slices.Contains(known, field) {
			found = &refusal{fmt.Sprintf("reads %q, which %s does not have", field, what), "it has " + strings.Join(known, ", ")}
		}
	}
	ast.PostOrderVisit(compiled.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if of, field := entryOf(e); field != "" {
			check(of, field)
		}
	}))
	return found
}

// entryOf splits a.b and a["b"] into a and b. A test with has is skipped, because it reads nothing.
func entryOf(e ast.Expr) (of ast.Expr, name string) {
	switch e.Kind() {
	case ast.SelectKind:
		if s := e.AsSelect(); !s.IsTestOnly() {
			return s.Operand(), s.FieldName()
		}
	case ast.CallKind:
		if call := e.AsCall(); call.FunctionName() == operators.Index {
			text, _ := call.Args()[1].AsLiteral().(types.String)
			return call.Args()[0], string(text)
		}
	default:
	}
	return nil, ""
}

// reads reports whether an expression uses the report of a cluster.
func reads(compiled *cel.Ast) bool {
	found := false
	ast.PostOrderVisit(compiled.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.IdentKind && (e.AsIdent() == feedbackVariable || e.AsIdent() == conditionsVariable)
	}))
	return found
}

// neededFeedback returns the sorted names of feedback that an expression reads without a test by has or in.
func neededFeedback(compiled *cel.Ast) []string {
	read, asked := map[string]bool{}, map[string]bool{}
	isFeedback := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == feedbackVariable }
	note := func(names map[string]bool, e ast.Expr) {
		if name, isText := e.AsLiteral().(types.String); e.Kind() == ast.LiteralKind && isText {
			names[string(name)] = true
		}
	}
	ast.PostOrderVisit(compiled.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			selected := e.AsSelect()
			if isFeedback(selected.Operand()) && selected.IsTestOnly() {
				asked[selected.FieldName()] = true
			} else if isFeedback(selected.Operand()) {
				read[selected.FieldName()] = true
			}
		case ast.CallKind:
			switch args := e.AsCall().Args(); {
			case e.AsCall().FunctionName() == operators.Index && isFeedback(args[0]):
				note(read, args[1])
			case e.AsCall().FunctionName() == operators.In && isFeedback(args[1]):
				note(asked, args[0])
			}
		default:
		}
	}))
	maps.DeleteFunc(read, func(name string, _ bool) bool { return asked[name] })
	return slices.Sorted(maps.Keys(read))
}

// sizes is the assumed size of values in the estimate of a cost.
type sizes struct{}

// EstimateSize bounds every value that is not a literal of the expression.
func (sizes) EstimateSize(checker.AstNode) *checker.SizeEstimate {
	return &checker.SizeEstimate{Min: 0, Max: maxElements}
}

// EstimateCallCost leaves the cost of functions to CEL.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// holds evaluates the expression. The error says, in one line, why it has no value. Usually it reads a value that was
// not reported.
func (e *expression) holds(values map[string]any) (bool, error) {
	out, _, err := e.program.Eval(values)
	if err != nil {
		return false, fmt.Errorf("%s", strings.Join(strings.Fields(err.Error()), " "))
	}
	value, ok := out.(types.Bool)
	return ok && bool(value), nil
}
