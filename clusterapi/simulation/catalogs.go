package simulation

func (p *process) catalogs() *behaviour      { return &behaviour{name: "catalogs"} }
func (p *process) installations() *behaviour { return &behaviour{name: "installations"} }
