package lang

import (
	"regexp"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Limits of a condition. A longer or deeper text is refused when it is created. An evaluation that
// exceeds MaxCost, in CEL's cost units, is an error and therefore does not match.
const (
	MaxTextBytes = 4 << 10
	maxNesting   = 64
	maxNodes     = 10_000
	MaxCost      = 20_000
)

// NewLanguage returns CEL with Fanfare's functions and limits, and the variables event and ce.
func NewLanguage() (*cel.Env, error) {
	return cel.NewEnv(append(LanguageOptions(), cel.Variable("event", cel.DynType), cel.Variable(AttributesName, cel.DynType))...)
}

// LanguageOptions declares Fanfare's functions and limits.
func LanguageOptions() []cel.EnvOption {
	return append(append(crossingOptions(), dynamicOperatorOptions()...),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(MaxTextBytes),
		cel.ParserRecursionLimit(maxNesting),
		cel.ExpressionNodeLimit(maxNodes),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()), // RegexSize validates regular expressions
		foldedFunction("contains_ci", ContainsFolded),
		foldedFunction("starts_with_ci", HasFoldedPrefix),
		geoFunction(),
		jmespathFunction(),
	)
}

// foldedFunction declares a function that compares two strings after case folding.
func foldedFunction(name string, compare func(text, part string) bool) cel.EnvOption {
	return cel.Function(name, cel.Overload(name+"_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
		cel.BinaryBinding(func(first, second ref.Val) ref.Val {
			text, ok1 := first.(types.String)
			part, ok2 := second.(types.String)
			if !ok1 || !ok2 {
				return types.NewErr("no such overload")
			}
			return types.Bool(compare(Fold(string(text)), Fold(string(part))))
		})))
}

// ProgramOptions are the options of every program that cel-go evaluates.
func ProgramOptions() []cel.ProgramOption {
	return []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize), cel.CostLimit(MaxCost), cel.CustomDecorator(boundedRegex), cel.CustomDecorator(precompiledJMESPath)}
}

var identifier = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

// reservedNames have another meaning in CEL or Fanfare: a field with such a name is written
// event.NAME.
var reservedNames = []string{
	"event", "sub", AttributesName,
	"bool", "bytes", "double", "duration", "dyn", "int", "list", "map", "null_type", "string", "timestamp", "type", "uint",
	"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
	"package", "namespace", "null", "return", "true", "var", "void", "while",
}

// bareNames lists the fields of the event that may be written without event before them.
func bareNames(event *SchemaType) []string {
	return slices.DeleteFunc(event.names(), func(name string) bool { return !canBeBare(name) })
}

// canBeBare reports whether a field with that name may be written without event before it.
func canBeBare(name string) bool {
	return identifier.MatchString(name) && !slices.Contains(reservedNames, name)
}
