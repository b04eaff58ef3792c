// A module of its own, so that what this peer needs stays out of the product.
module scanode/erl_test/peers/ergo

go 1.26.0

require github.com/ergo-services/ergo v1.999.224
