// Marks the cases that `npm test` leaves out. They run in `npm run test:long`, in the gate, and when their file is named.

/**
 * Options of a case or a suite that takes seconds, while a cheaper case protects the same rule: `it('...', longCase, ...)`, and
 * beside other options `{ ...needsRoot, ...longCase }`. No entry of test/mutations names such a case (ADR 0076).
 * scripts/run-tests.js sets the variable and recognizes the reason.
 */
export const longCase: { readonly skip?: 'long' } =
  process.env['WRIT_TEST_SHORT'] === '1' ? { skip: 'long' } : {};
