// The version of Writ as it is said on sockets; a test holds it to package.json.
export const writVersion = '0.1.0';
