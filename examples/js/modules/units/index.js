export { toMiles } from "./miles.js";
export const name = "units";
