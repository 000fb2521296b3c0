// Public keys for which anybody can make signatures without a secret. OpenSSL takes them like any other, so that one of
// them among the keys of a role would be a signer who is everybody. Pure numbers; loads and verifies nothing.

/** The prime of the field of Ed25519 (RFC 8032 section 5.1). */
const fieldPrime = (1n << 255n) - 19n;

/**
 * The y of the eight points of small order. With such a key the signed bytes hardly enter the equation: one signature
 * fits every message, or every eighth.
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
 * @returns true for a point of small order, and for a second way to write a point (RFC 8032 5.1.3: y is below the prime)
 */
export function isWeakEd25519(bytes: Uint8Array): boolean {
  const y = BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`) & ((1n << 255n) - 1n);
  return y >= fieldPrime || smallOrder.has(y);
}

/** @returns true for the exponent 1: then a signature is nothing but the padded digest, which needs no secret */
export function isWeakRsaExponent(exponent: bigint): boolean {
  return exponent < 3n;
}
