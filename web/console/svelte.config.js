/** The code has only runes; a warning of the compiler fails the build. */
export default { compilerOptions: { runes: true } };
