package manifest

// What makes graphs, for tests of its parts.
type Grouping = grouping

var (
	ByNumberAndComponent        = byNumberAndComponent
	FlattenByNumberAndComponent = flattenByNumberAndComponent
	PermuteOrder                = permuteOrder
	ShiftOrder                  = shiftOrder
	NewGraph                    = newGraph
)

// The annotations that decide about inclusion.
const (
	AnnotationExcludePrefix = annotationExcludePrefix
	AnnotationIncludePrefix = annotationIncludePrefix
	AnnotationFeatureSet    = annotationFeatureSet
	AnnotationFeatureGate   = annotationFeatureGate
	AnnotationMajorVersion  = annotationMajorVersion
	AnnotationCapability    = annotationCapability
)

// Hash is the hash of a payload with these manifests.
var Hash = hashOf

// OneNode leaves each node as it is.
func OneNode([]*Task) [][][]*Task { return nil }
