package olm

// What only tests look at.
var (
	Check           = (*Generation).check
	ErrInconsistent = errInconsistent
)

func (c *Contents) Matching(r *Requirement, eval CELEvaluator) ([]*Entry, error) {
	return c.index.matching(r, eval)
}

func (c *Contents) Disordered(r *Requirement, eval CELEvaluator) ([]*Channel, error) {
	return c.disordered(r, eval)
}
