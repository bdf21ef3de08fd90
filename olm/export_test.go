package olm

// What only tests look at.
var (
	Check           = (*Generation).check
	ErrInconsistent = errInconsistent
)
