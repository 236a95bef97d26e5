import { languages } from "./greet.js";

console.log("late.js is loaded when it is asked for, and once");

export default () => `late, in ${languages.length} languages`;
