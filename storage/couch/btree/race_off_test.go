//go:build !race

package btree

const underRace = false
