// Weak public keys: valid signatures for them can be made without a secret. OpenSSL accepts such keys, so that one of them in a role
// would count as a signer for any attacker. Pure arithmetic.

/** The prime of the field of Ed25519 (RFC 8032 section 5.1). */
const fieldPrime = (1n << 255n) - 19n;

/**
 * The y coordinates of the eight points of small order. With such a key the signed bytes have almost no effect on the equation: one
 * signature is valid for each message, or for every eighth.
 */
const smallOrder: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  fieldPrime - 1n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
]);

/**
 * @param bytes the 32 bytes of a public key
 * @returns true for a point of small order, and for a non-canonical encoding of a point (RFC 8032 5.1.3: y is below the prime)
 */
export function isWeakEd25519(bytes: Uint8Array): boolean {
  const y = BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`) & ((1n << 255n) - 1n);
  return y >= fieldPrime || smallOrder.has(y);
}

/** @returns true for an exponent below 3. With the exponent 1 a signature is just the padded digest, which needs no secret. */
export function isWeakRsaExponent(exponent: bigint): boolean {
  return exponent < 3n;
}
