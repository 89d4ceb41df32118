"""The library's functions in C, and from there as WebAssembly: jaxpr → C → wasm.

`jaxprs` goes through a function's equations, `rules` say what each primitive is, `values` what is known of an array,
`program` how the text is written and `memory` where arrays lie; `prelude.c` is what the text calls, `module` puts
functions together and `compile` makes them WebAssembly.
"""
