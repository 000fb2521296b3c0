// The version of Writ as it is said on sockets; a test compares it with package.json.
export const writVersion = '0.1.0';
