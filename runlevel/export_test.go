package runlevel

// SetServingTLS lets tests reach the one parser of the package.
var SetServingTLS = setServingTLS
