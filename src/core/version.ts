// The version of Writ in the greeting of sockets; a test compares it with package.json.
export const writVersion = '0.1.0';

/**
 * Midnight (UTC) of the date of the last release before this program was built: a correct clock is never earlier. A test compares it
 * with CHANGELOG.md.
 */
export const writReleasedAtMs = Date.UTC(2026, 10, 27);
