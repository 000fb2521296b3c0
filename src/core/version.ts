// The version of Writ as it is said on sockets, and where its pages are; a test compares both with package.json.
export const writVersion = '0.1.0';

/** The home page of Writ, below which its documentation is. */
export const homePage = 'https://writ.invalid/';
