//go:build race

package btree

const underRace = true
