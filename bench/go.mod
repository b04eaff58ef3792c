// Benchmarks of the transports against others. A module of its own, so that what
// they need stays out of the product.
module scanode/bench

go 1.26.0

require (
	github.com/ergo-services/ergo v1.999.224
	scanode v0.0.0
)

replace scanode => ../
